"""Decoders from token ids to a weighted mean over tokens, on one device and on a mesh of ranks.

They have what the training steps lack and what mistakes are made in: fused weights, a rotation of a part of
each head, key heads that several ranks hold, capped scores, a window, a cache that is written in place, tied
weights, and a mean whose weights differ between ranks. Everything is tiny and on the meta device.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed import ProcessGroup

Groups = Mapping[str, ProcessGroup]
Build = Callable[..., object]
BATCH, TOKENS, WIDTH, HEADS, HEAD, INNER, VOCABULARY, SLOTS = 4, 8, 24, 8, 6, 40, 32, 12
KV_HEADS, WINDOW, CAP, ROTATED, LAYERS = 4, 5, 30.0, 4, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a rank stands: how many there are along each axis, and which it is. No groups: one device."""

    data: ProcessGroup | None = None
    tensor: ProcessGroup | None = None

    @property
    def count(self) -> int:
        """How many ranks hold parts of the width."""
        return 1 if self.tensor is None else dist.get_world_size(self.tensor)

    @property
    def rank(self) -> int:
        """Which of them this is."""
        return 0 if self.tensor is None else dist.get_rank(self.tensor)

    @property
    def batch(self) -> int:
        """How many sequences there are here."""
        return BATCH if self.data is None else BATCH // dist.get_world_size(self.data)

    def total(self, x: Tensor) -> Tensor:
        """A sum over what ranks have parts of."""
        return x if self.tensor is None else funcol.all_reduce(x, "sum", self.tensor)

    def over_batch(self, x: Tensor) -> Tensor:
        """A sum over what all sequences add."""
        return x if self.data is None else funcol.all_reduce(x, "sum", self.data)

    def gathered(self, x: Tensor, dim: int) -> Tensor:
        """The whole of what ranks hold pieces of."""
        return x if self.tensor is None else funcol.all_gather_tensor(x, dim, self.tensor)

    def scattered(self, x: Tensor, dim: int) -> Tensor:
        """A sum over ranks, a piece to each."""
        return x if self.tensor is None else funcol.reduce_scatter_tensor(x, "sum", dim, self.tensor)


class Embedding(nn.Module):
    """The rows of one rank; others' are 0 here."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.rows = VOCABULARY // place.count
        self.first = place.rank * self.rows
        self.weight = nn.Parameter(torch.empty(self.rows, WIDTH))

    def forward(self, ids: Tensor) -> Tensor:
        """ids [B, T] -> [B, T, W]."""
        if self.place.tensor is None:
            return F.embedding(ids, self.weight)
        outside = (ids < self.first) | (ids >= self.first + self.rows)
        found = F.embedding((ids - self.first).masked_fill(outside, 0), self.weight)
        return self.place.total(found.masked_fill(outside.unsqueeze(-1), 0.0))


class Norm(nn.Module):
    """Root-mean-square normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """x [B, T, W] -> [B, T, W]."""
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def rotated(x: Tensor, positions: Tensor) -> Tensor:
    """The first part of each head, turned by its position, halves against halves."""
    turned, kept = x[..., :ROTATED], x[..., ROTATED:]
    frequencies = 100.0 ** (-torch.arange(0, ROTATED, 2, device=x.device) / ROTATED)
    angles = torch.outer(positions.float(), frequencies)
    angles = torch.cat((angles, angles), dim=-1)
    first, second = turned.chunk(2, dim=-1)
    turned = turned * angles.cos() + torch.cat((-second, first), dim=-1) * angles.sin()
    return torch.cat((turned, kept), dim=-1)


class Attention(nn.Module):
    """The heads of one rank, from one fused weight; what it adds is still to be summed over ranks."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.heads, self.kv_heads = HEADS // place.count, max(1, KV_HEADS // place.count)
        self.sizes = [self.heads * HEAD, self.kv_heads * HEAD, self.kv_heads * HEAD]
        self.qkv = nn.Linear(WIDTH, sum(self.sizes), bias=False)
        self.o = nn.Linear(self.heads * HEAD, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """x [B, T, W] -> [B, T, W]."""
        q, k, v = (
            part.unflatten(-1, (-1, HEAD)).transpose(1, 2) for part in self.qkv(x).split(self.sizes, -1)
        )
        positions = torch.arange(TOKENS, device=x.device)
        q, k = rotated(q, positions), rotated(k, positions)
        k, v = (part.repeat_interleave(self.heads // self.kv_heads, dim=1) for part in (k, v))
        scores = CAP * torch.tanh(q @ k.transpose(-1, -2) * HEAD**-0.5 / CAP)
        back = positions[:, None] - positions[None, :]
        scores = scores.masked_fill((back < 0) | (back >= WINDOW), float("-inf"))
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Gated(nn.Module):
    """A gated perceptron, gate and up in one weight; what it adds is still to be summed over ranks."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.inner = INNER // place.count
        self.gate_up = nn.Linear(WIDTH, 2 * self.inner, bias=False)
        self.down = nn.Linear(self.inner, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """x [B, T, W] -> [B, T, W]."""
        gate, up = self.gate_up(x).split(self.inner, -1)
        return self.down(F.silu(gate) * up)


class Layer(nn.Module):
    """Attention and perceptron behind norms, and a residual stream that is scaled."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.before, self.between = Norm(), Norm()
        self.attention, self.perceptron = Attention(place), Gated(place)

    def forward(self, x: Tensor) -> Tensor:
        """x [B, T, W] -> [B, T, W]."""
        x = x + 0.7 * self.place.total(self.attention(self.before(x)))
        return x + 0.7 * self.place.total(self.perceptron(self.between(x)))


class Llama(nn.Module):
    """Ids to logits by the embedding's own weight, and the weighted mean of their squares."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.embedding, self.norm = Embedding(place), Norm()
        self.layers = nn.ModuleList(Layer(place) for _ in range(LAYERS))

    def forward(self, ids: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """ids, weights [B, T] -> logits [B, T, V], loss []."""
        x = self.embedding(ids) * WIDTH**0.5
        for layer in self.layers:
            x = layer(x)
        logits = F.linear(self.norm(x), self.embedding.weight)
        each = self.place.total(logits.pow(2).sum(-1)) / VOCABULARY
        loss = self.place.over_batch((each * weights).sum()) / self.place.over_batch(weights.sum())
        return logits, loss


class Block(nn.Module):
    """Attention over a cache and a perceptron, with biases, on a stream that ranks hold pieces of."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.heads = HEADS // place.count
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * self.heads * HEAD)
        self.o = nn.Linear(self.heads * HEAD, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, INNER // place.count)
        self.down = nn.Linear(INNER // place.count, WIDTH, bias=False)
        self.o_bias, self.down_bias = (nn.Parameter(torch.empty(WIDTH)) for _ in range(2))

    def forward(self, x: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """x [B, T, W], cache [2, B, H, S, D] -> the same, the cache with this step's keys and values."""
        made = self.attended(self.place.gathered(self.before(x), 1), cache)
        x = x + self.place.scattered(self.o(made[0]), 1) + self.o_bias
        wide = F.gelu(self.up(self.place.gathered(self.between(x), 1)))
        return x + self.place.scattered(self.down(wide), 1) + self.down_bias, made[1]

    def attended(self, x: Tensor, cache: Tensor) -> tuple[Tensor, Tensor]:
        """x [B, T, W] -> [B, T, H D] of what the cache holds after it was written to."""
        q, k, v = (part.unflatten(-1, (-1, HEAD)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        past = SLOTS - TOKENS
        cache = cache.clone()
        cache[0, :, :, past:] = k
        cache[1, :, :, past:] = v
        place = torch.arange(SLOTS, device=x.device)
        seen = place[None, :] <= past + torch.arange(TOKENS, device=x.device)[:, None]
        made = F.scaled_dot_product_attention(q, cache[0], cache[1], attn_mask=seen)
        return made.transpose(1, 2).flatten(2), cache


class Gpt(nn.Module):
    """Ids and learned positions to logits, and the caches."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.empty(TOKENS, WIDTH))
        self.blocks = nn.ModuleList(Block(place) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY // place.count, bias=False)

    def forward(self, ids: Tensor, cache: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """ids [B, T], cache [L, 2, B, H, S, D] -> logits [B, T, V], log of their sum [B, T], the caches."""
        length = TOKENS // self.place.count
        mine = slice(self.place.rank * length, (self.place.rank + 1) * length)
        x = self.embedding(ids[:, mine]) + self.positions[mine]
        caches: list[Tensor] = []
        for block, own in zip(self.blocks, cache, strict=True):
            x, kept = block(x, own)
            caches.append(kept)
        logits = self.head(self.place.gathered(self.norm(x), 1))
        return logits, self.place.total(logits.exp().sum(-1)).log(), torch.stack(caches)


def llama_alone() -> object:
    """On one device."""
    return _llama(Place())


def llama_in_parts(rank: int, groups: Groups) -> object:
    """On the ranks of axes ``dp`` and ``tp``."""
    del rank
    return _llama(Place(data=groups["dp"], tensor=groups["tp"]))


def gpt_alone() -> object:
    """On one device."""
    return _gpt(Place())


def gpt_in_parts(rank: int, groups: Groups) -> object:
    """On the ranks of axis ``tp``, each with a piece of the sequence between blocks."""
    del rank
    return _gpt(Place(tensor=groups["tp"]))


def _llama(place: Place) -> object:
    with torch.device("meta"):
        ids = torch.zeros(place.batch, TOKENS, dtype=torch.long)
        return Llama(place).eval(), (ids, torch.empty(place.batch, TOKENS))


def _gpt(place: Place) -> object:
    with torch.device("meta"):
        ids = torch.zeros(BATCH, TOKENS, dtype=torch.long)
        cache = torch.empty(LAYERS, 2, BATCH, HEADS // place.count, SLOTS, HEAD)
        return Gpt(place).eval(), (ids, cache)
