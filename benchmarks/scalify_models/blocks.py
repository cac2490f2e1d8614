"""Blocks of language models with their losses, on one device and in parts on the ranks of an axis ``tp``.

Everything is tiny and on the meta device. Sizes differ from each other, so that no dimension is taken for
another.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F
from scalify_models.regions import Copied, Gathered, Scattered, Summed
from torch import Tensor, nn
from torch.distributed import ProcessGroup

Groups = Mapping[str, ProcessGroup]
Build = Callable[..., object]
BATCH, TOKENS, WIDTH, HEADS, KV_HEADS, INNER, VOCABULARY = 2, 8, 48, 8, 4, 80, 96
HEAD = WIDTH // HEADS


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """How a block is computed in parts: by which ranks, and whether its stream is cut along the sequence."""

    group: ProcessGroup | None = None
    cuts_sequence: bool = False

    @property
    def count(self) -> int:
        """The number of ranks."""
        return 1 if self.group is None else dist.get_world_size(self.group)

    @property
    def rank(self) -> int:
        """This rank's place among them."""
        return 0 if self.group is None else dist.get_rank(self.group)

    def enter(self, x: Tensor) -> Tensor:
        """From the stream into a region where ranks have parts of the width."""
        if self.group is None:
            return x
        return Gathered.apply(x, 1, self.group) if self.cuts_sequence else Copied.apply(x, self.group)

    def leave(self, x: Tensor) -> Tensor:
        """Parts of a sum, back to the stream."""
        if self.group is None:
            return x
        return Scattered.apply(x, 1, self.group) if self.cuts_sequence else Summed.apply(x, self.group)

    def held_by_all(self, weight: Tensor) -> Tensor:
        """A parameter that all ranks hold, where each sees a part of the sequence."""
        return Copied.apply(weight, self.group) if self.group and self.cuts_sequence else weight

    def total(self, x: Tensor) -> Tensor:
        """A sum over the stream."""
        return Summed.apply(x, self.group) if self.group and self.cuts_sequence else x

    def tokens(self) -> int:
        """How much of the sequence the stream has here."""
        return TOKENS // self.count if self.cuts_sequence else TOKENS


class RmsNorm(nn.Module):
    """Root-mean-square normalisation."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.parts = parts
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return x * scale * self.parts.held_by_all(self.weight)


class LayerNorm(nn.Module):
    """Mean and variance taken out, scaled and moved."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.parts = parts
        self.weight, self.bias = nn.Parameter(torch.ones(WIDTH)), nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = self.parts.held_by_all(self.weight), self.parts.held_by_all(self.bias)
        return F.layer_norm(x, (WIDTH,), weight, bias)


def rotated(x: Tensor) -> Tensor:
    """Rotary position embedding of [B, H, T, D], halves against halves."""
    tokens, width = x.shape[-2:]
    frequencies = 10000.0 ** (-torch.arange(0, width, 2, device=x.device) / width)
    angles = torch.outer(torch.arange(tokens, device=x.device).float(), frequencies)
    cos, sin = (torch.cat((part, part), -1) for part in (angles.cos(), angles.sin()))
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Attention(nn.Module):
    """The heads of one rank, with or without rotation of queries and keys."""

    def __init__(self, parts: Parts, kv_heads: int, *, rotates: bool) -> None:
        super().__init__()
        self.parts, self.rotates = parts, rotates
        wide, narrow = HEADS * HEAD // parts.count, kv_heads * HEAD // parts.count
        self.q, self.k, self.v = (nn.Linear(WIDTH, size, bias=False) for size in (wide, narrow, narrow))
        self.o = nn.Linear(wide, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (w(x).unflatten(-1, (-1, HEAD)).transpose(1, 2) for w in (self.q, self.k, self.v))
        if self.rotates:
            q, k = rotated(q), rotated(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
        return self.o(y.transpose(1, 2).flatten(2))


class Gated(nn.Module):
    """A gated perceptron, by a part of its inner width."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.gate, self.up = (nn.Linear(WIDTH, INNER // parts.count, bias=False) for _ in range(2))
        self.down = nn.Linear(INNER // parts.count, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Perceptron(nn.Module):
    """Up, a Gaussian unit, down; the last bias is added after the sum."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, INNER // parts.count)
        self.down = nn.Linear(INNER // parts.count, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x)))


class LlamaBlock(nn.Module):
    """Attention and a gated perceptron behind norms."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.parts = parts
        self.before, self.between = RmsNorm(parts), RmsNorm(parts)
        self.attention, self.perceptron = Attention(parts, KV_HEADS, rotates=True), Gated(parts)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.parts.leave(self.attention(self.parts.enter(self.before(x))))
        return x + self.parts.leave(self.perceptron(self.parts.enter(self.between(x))))


class GptBlock(nn.Module):
    """Attention and a perceptron behind norms with biases."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.parts = parts
        self.before, self.between = LayerNorm(parts), LayerNorm(parts)
        self.attention, self.perceptron = Attention(parts, HEADS, rotates=False), Perceptron(parts)
        self.bias = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.parts.leave(self.attention(self.parts.enter(self.before(x))))
        made = self.parts.leave(self.perceptron(self.parts.enter(self.between(x))))
        return x + made + self.parts.held_by_all(self.bias)


class Regression(nn.Module):
    """A block and the mean square distance of what it gives from a target."""

    def __init__(self, block: nn.Module, parts: Parts) -> None:
        super().__init__()
        self.block, self.parts = block, parts

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        distance = self.block(x) - target
        return self.parts.total(distance.pow(2).sum() / (BATCH * TOKENS * WIDTH))


def regression(block: Callable[[Parts], nn.Module], parts: Parts) -> object:
    """A block with its loss, and its inputs; the first wants a gradient."""
    with torch.device("meta"):
        x = torch.empty(BATCH, parts.tokens(), WIDTH, requires_grad=True)
        return Regression(block(parts), parts), (x, torch.empty(BATCH, parts.tokens(), WIDTH))


def alone(block: Callable[[Parts], nn.Module]) -> Build:
    """A block on one device."""
    return lambda: regression(block, Parts())


def in_parts(block: Callable[[Parts], nn.Module], *, cuts_sequence: bool = False) -> Build:
    """A block on the ranks of axis ``tp``."""

    def build(rank: int, groups: Groups) -> object:
        return regression(block, Parts(group=groups["tp"], cuts_sequence=cuts_sequence))

    return build
