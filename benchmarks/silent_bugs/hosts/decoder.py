"""A decoder in the manner of Llama, whole or cut over tensor-parallel ranks: the host of many a bug.

An entry replaces the part of it that has the bug: a layer is made of the classes that it is given.
Everything is tiny, so that a difference can be looked for by running it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from silent_bugs.hosts.ranks import Team, all_reduced
from torch import Tensor, nn

ALONE = Team()


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The shape of a model and of what it is run on."""

    hidden: int = 16
    heads: int = 4
    kv_heads: int = 2
    intermediate: int = 24
    vocabulary: int = 32
    batch: int = 2
    tokens: int = 6

    @property
    def head_dim(self) -> int:
        """The width of one head."""
        return self.hidden // self.heads


SIZE = Size()


class Norm(nn.Module):
    """Root-mean-square normalisation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """x [..., H] -> [..., H]."""
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Column(nn.Module):
    """A linear layer of which every rank has some of the outputs."""

    def __init__(self, inputs: int, outputs: int, team: Team) -> None:
        super().__init__()
        self.team = team
        self.weight = nn.Parameter(torch.zeros(outputs // team.size, inputs))

    def forward(self, x: Tensor) -> Tensor:
        """x [..., I], the same everywhere -> [..., O / ranks]."""
        return F.linear(self.team.shared(x), self.weight)


class Row(nn.Module):
    """A linear layer of which every rank has some of the inputs; the bias is added to the sum."""

    def __init__(self, inputs: int, outputs: int, team: Team) -> None:
        super().__init__()
        self.team = team
        self.weight = nn.Parameter(torch.zeros(outputs, inputs // team.size))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """x [..., I / ranks] -> [..., O], the same everywhere."""
        return self.team.summed(F.linear(x, self.weight)) + self.bias


class Attention(nn.Module):
    """Causal attention with fewer key heads than query heads; every rank has some of both."""

    def __init__(self, size: Size, team: Team) -> None:
        super().__init__()
        self.size, self.team = size, team
        self.heads, self.kv_heads = size.heads // team.size, max(1, size.kv_heads // team.size)
        self.q_proj = Column(size.hidden, size.hidden, team)
        self.k_proj = Column(size.hidden, size.kv_heads * size.head_dim, team)
        self.v_proj = Column(size.hidden, size.kv_heads * size.head_dim, team)
        self.o_proj = Row(size.hidden, size.hidden, team)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """x [B, T, H]; cos, sin [T, D] -> [B, T, H]."""
        q, k = (rotated(heads, cos, sin) for heads in (self.queries(x), self.keys(x)))
        y = self.mixed(q, k, self.values(x))
        return self.o_proj(y.transpose(1, 2).flatten(2))

    def queries(self, x: Tensor) -> Tensor:
        """[B, heads, T, D]."""
        return self.q_proj(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def keys(self, x: Tensor) -> Tensor:
        """[B, key heads, T, D]."""
        return self.k_proj(x).unflatten(-1, (self.kv_heads, -1)).transpose(1, 2)

    def values(self, x: Tensor) -> Tensor:
        """[B, key heads, T, D]."""
        return self.v_proj(x).unflatten(-1, (self.kv_heads, -1)).transpose(1, 2)

    def mixed(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Values by the similarity of queries and keys, as far back as the query's own position."""
        k, v = (x.repeat_interleave(self.heads // self.kv_heads, 1) for x in (k, v))
        scores = q @ k.transpose(-2, -1) * self.size.head_dim**-0.5
        past = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
        return scores.masked_fill(~past, -torch.inf).softmax(-1) @ v


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding, halves against halves."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def angles(positions: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines [T, D] of the positions [T]."""
    places = torch.arange(0, width, 2, device=positions.device)
    turned = torch.outer(positions, 10000.0 ** (-places / width))
    both = torch.cat((turned, turned), -1)
    return both.cos(), both.sin()


class Mlp(nn.Module):
    """Gated, every rank with a part of the width."""

    def __init__(self, size: Size, team: Team) -> None:
        super().__init__()
        self.team = team
        self.gate_proj = Column(size.hidden, size.intermediate, team)
        self.up_proj = Column(size.hidden, size.intermediate, team)
        self.down_proj = Row(size.intermediate, size.hidden, team)

    def forward(self, x: Tensor) -> Tensor:
        """x [B, T, H] -> [B, T, H]."""
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """Attention and feed-forward on a residual stream that all ranks hold."""

    def __init__(self, size: Size, attention: nn.Module, mlp: nn.Module) -> None:
        super().__init__()
        self.self_attn, self.mlp = attention, mlp
        self.input_layernorm, self.post_attention_layernorm = Norm(size.hidden), Norm(size.hidden)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """x [B, T, H] -> [B, T, H]."""
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Embedding(nn.Module):
    """The rows of one rank: what other ranks hold is 0 here, and summed over all."""

    def __init__(self, size: Size, team: Team) -> None:
        super().__init__()
        self.team = team
        self.weight = nn.Parameter(torch.zeros(size.vocabulary // team.size, size.hidden))

    def forward(self, ids: Tensor) -> Tensor:
        """ids [B, T] -> [B, T, H]."""
        if self.team.size == 1:
            return F.embedding(ids, self.weight)
        rows = self.weight.shape[0]
        local = ids - self.team.rank * rows
        outside = (local < 0) | (local >= rows)
        found = F.embedding(local.masked_fill(outside, 0), self.weight)
        return self.team.summed(found.masked_fill(outside.unsqueeze(-1), 0.0))


class DecoderBody(nn.Module):
    """The layers of a decoder, and what they compute: entries say what a program makes of it."""

    def __init__(
        self,
        team: Team = ALONE,
        size: Size = SIZE,
        attentions: Sequence[type[Attention]] = (Attention, Attention),
        mlps: Sequence[type[Mlp]] = (Mlp, Mlp),
    ) -> None:
        super().__init__()
        self.size, self.team = size, team
        self.embed_tokens = Embedding(size, team)
        self.layers = nn.ModuleList(
            Layer(size, attention(size, team), mlp(size, team))
            for attention, mlp in zip(attentions, mlps, strict=True)
        )
        self.norm = Norm(size.hidden)
        self.lm_head = Column(size.hidden, size.vocabulary, team)

    def hidden(self, ids: Tensor) -> Tensor:
        """ids [B, T] -> [B, T, H]."""
        x = self.embed_tokens(ids)
        positions = torch.arange(ids.shape[1], device=ids.device)
        cos, sin = angles(positions, self.size.head_dim)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x)

    def logits(self, ids: Tensor) -> Tensor:
        """ids [B, T] -> [B, T, V / ranks]."""
        return self.lm_head(self.hidden(ids))


class Decoder(DecoderBody):
    """From ids to logits, of which every rank has its part of the vocabulary."""

    def forward(self, ids: Tensor) -> Tensor:
        """ids [B, T] -> [B, T, V / ranks]."""
        return self.logits(ids)


def vocabulary_loss(logits: Tensor, target: Tensor, team: Team) -> Tensor:
    """The negative log-likelihood [B, T] of targets, from logits [B, T, V / ranks]."""
    largest = all_reduced(logits.detach().amax(-1, keepdim=True), team, "max")
    shifted = logits - largest
    local = target - team.rank * logits.shape[-1]
    outside = (local < 0) | (local >= logits.shape[-1])
    own = shifted.gather(-1, local.masked_fill(outside, 0).unsqueeze(-1)).squeeze(-1)
    of_target = team.summed(own.masked_fill(outside, 0.0))
    return team.summed(shifted.exp().sum(-1)).log() - of_target


def ids_of(size: Size = SIZE, *, batch: int | None = None, tokens: int | None = None) -> Tensor:
    """Token ids, of which only the shape matters."""
    return torch.zeros(batch or size.batch, tokens or size.tokens, dtype=torch.long)
