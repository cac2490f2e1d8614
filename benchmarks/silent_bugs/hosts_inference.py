"""A decoder as inference engines write it: the host of bugs in kernels, weight loading and stages.

Projections are fused, the residual goes along beside the hidden state, tokens stand in one flat row, rotary
angles are looked up by position, and what attends is one function with arguments for everything that models
differ in. An entry hands in the part that has its bug. Everything is tiny, so that a difference can be looked
for by running it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from silent_bugs.hosts.ranks import Team
from torch import Tensor, nn

from scalify.ir.mesh import Mesh

Groups = Mapping[str, dist.ProcessGroup]
Built = tuple[nn.Module, tuple[Tensor, ...]]
ALONE = Team()
TWO_RANKS = Mesh(axes=(("tp", 2),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The shape of a model and of what it is run on; what its attention and its experts are like."""

    hidden: int = 16
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 8
    rotary_dim: int = 8
    intermediate: int = 24
    vocabulary: int = 40
    tokens: int = 6
    positions: int = 12
    soft_cap: float = 0.0
    window: int = 0
    experts: int = 4
    experts_per_token: int = 2
    routed_scaling: float = 2.5


CONFIG = Config()


def summed(x: Tensor, team: Team) -> Tensor:
    """The sum over ranks of what each holds, in a buffer of its own."""
    if team.group is None:
        return x
    total = x.clone()
    dist.all_reduce(total, group=team.group)
    return total


class RMSNorm(nn.Module):
    """The norm of the residual stream once ``x`` is added to it; gives both."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor, residual: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """x, residual [T, H]."""
        if residual is not None:
            x = x + residual
        return normed(x, self.weight), x


def normed(x: Tensor, weight: Tensor) -> Tensor:
    """Over the last dimension."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


class ColumnParallel(nn.Module):
    """Rows of the weight, of which every rank has its part."""

    def __init__(self, inputs: int, outputs: int, team: Team) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outputs // team.size, inputs))

    def forward(self, x: Tensor) -> Tensor:
        """x [T, I] -> [T, O / ranks]."""
        return F.linear(x, self.weight)


class RowParallel(nn.Module):
    """Columns of the weight, of which every rank has its part."""

    def __init__(self, inputs: int, outputs: int, team: Team) -> None:
        super().__init__()
        self.team = team
        self.weight = nn.Parameter(torch.zeros(outputs, inputs // team.size))

    def forward(self, x: Tensor) -> Tensor:
        """x [T, I / ranks] -> [T, O]."""
        return summed(F.linear(x, self.weight), self.team)


def rotary_tables(config: Config) -> tuple[Tensor, Tensor]:
    """Cosines and sines [positions, rotary / 2], as they are loaded with the weights."""
    half = config.rotary_dim // 2
    return torch.zeros(config.positions, half), torch.zeros(config.positions, half)


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [T, H, D] with its first dimensions turned, twice as many as the tables have; cos, sin [T, R / 2]."""
    rotary = 2 * cos.shape[-1]
    turning, kept = x[..., :rotary], x[..., rotary:]
    first, second = turning.chunk(2, -1)
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    turned = torch.cat((first * cos - second * sin, second * cos + first * sin), -1)
    return torch.cat((turned, kept), -1)


def attend(
    q: Tensor, k: Tensor, v: Tensor, *, scale: float, soft_cap: float = 0.0, window: int = 0
) -> Tensor:
    """Causal attention; q [T, H, D], k, v [T, K, D] -> [T, H * D]. Scores are capped and tokens farther back
    than the window are left out, where these are not 0."""
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    scores = torch.einsum("thd,shd->hts", q, k) * scale
    if soft_cap:
        scores = soft_cap * torch.tanh(scores / soft_cap)
    queries, keys = (
        torch.arange(q.shape[0], device=q.device)[:, None],
        torch.arange(k.shape[0], device=q.device),
    )
    seen = keys <= queries
    if window:
        seen = seen & (queries - keys < window)
    weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    return torch.einsum("hts,shd->thd", weights, v).flatten(1)


class Attention(nn.Module):
    """Query, key and value from one projection; every rank has some heads of each."""

    def __init__(self, config: Config, team: Team) -> None:
        super().__init__()
        self.config, self.team = config, team
        self.heads, self.kv_heads = config.heads // team.size, config.kv_heads // team.size
        width = config.head_dim
        self.qkv_proj = ColumnParallel(config.hidden, (config.heads + 2 * config.kv_heads) * width, team)
        self.o_proj = RowParallel(config.heads * width, config.hidden, team)
        cos, sin = rotary_tables(config)
        self.register_buffer("cos_cache", cos)
        self.register_buffer("sin_cache", sin)

    def forward(self, positions: Tensor, x: Tensor) -> Tensor:
        """positions [T] (or [3, T]), x [T, H] -> [T, H]."""
        width = self.config.head_dim
        sizes = [self.heads * width, self.kv_heads * width, self.kv_heads * width]
        q, k, v = (part.unflatten(-1, (-1, width)) for part in self.qkv_proj(x).split(sizes, -1))
        q, k = self.placed(positions, q, k)
        return self.o_proj(self.mixed(q, k, v))

    def placed(self, positions: Tensor, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys turned by their positions."""
        cos, sin = self.angles(positions)
        return rotated(q, cos, sin), rotated(k, cos, sin)

    def angles(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines [T, R / 2]."""
        return self.table("cos_cache")[positions], self.table("sin_cache")[positions]

    def table(self, name: str) -> Tensor:
        """A buffer."""
        found = getattr(self, name)
        assert isinstance(found, Tensor)
        return found

    def mixed(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """[T, H * D]."""
        config = self.config
        return attend(q, k, v, scale=config.head_dim**-0.5, soft_cap=config.soft_cap, window=config.window)


class Mlp(nn.Module):
    """Gate and up in one projection."""

    def __init__(self, config: Config, team: Team) -> None:
        super().__init__()
        self.config, self.team = config, team
        self.gate_up_proj = ColumnParallel(config.hidden, 2 * config.intermediate, team)
        self.down_proj = RowParallel(config.intermediate, config.hidden, team)

    def forward(self, x: Tensor) -> Tensor:
        """x [T, H] -> [T, H]."""
        return self.down_proj(silu_and_mul(self.gate_up_proj(x)))


def silu_and_mul(both: Tensor) -> Tensor:
    """The first half gates the second."""
    half = both.shape[-1] // 2
    return F.silu(both[..., :half]) * both[..., half:]


class Experts(nn.Module):
    """A mixture of experts, some on every rank; each token goes to a few, with weights that sum to one."""

    def __init__(self, config: Config, team: Team) -> None:
        super().__init__()
        self.config, self.team = config, team
        own, inner = config.experts // team.size, config.intermediate
        self.gate = nn.Linear(config.hidden, config.experts, bias=False)
        self.gate_up = nn.Parameter(torch.zeros(own, 2 * inner, config.hidden))
        self.down = nn.Parameter(torch.zeros(own, config.hidden, inner))

    def forward(self, x: Tensor) -> Tensor:
        """x [T, H] -> [T, H]."""
        return summed(self.routed(x), self.team) * self.config.routed_scaling

    def routed(self, x: Tensor) -> Tensor:
        """What this rank's experts add up to."""
        weights, chosen = self.routing(self.gate(x))
        shares = x.new_zeros(x.shape[0], self.config.experts).scatter(1, chosen, weights)
        own = self.gate_up.shape[0]
        mine = shares[:, self.team.rank * own : (self.team.rank + 1) * own]
        inner = silu_and_mul(torch.einsum("th,efh->tef", x, self.gate_up))
        return torch.einsum("te,tef,ehf->th", mine, inner, self.down)

    def routing(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Weights and numbers of the experts [T, k] of every token."""
        weights, chosen = logits.softmax(-1).topk(self.config.experts_per_token, -1)
        return weights / weights.sum(-1, keepdim=True), chosen


class Layer(nn.Module):
    """Attention, then what does not mix tokens; each behind a norm of the stream so far."""

    def __init__(self, config: Config, attention: nn.Module, mlp: nn.Module) -> None:
        super().__init__()
        self.self_attn, self.mlp = attention, mlp
        self.input_layernorm = RMSNorm(config.hidden)
        self.post_attention_layernorm = RMSNorm(config.hidden)

    def forward(self, positions: Tensor, x: Tensor, residual: Tensor | None) -> tuple[Tensor, Tensor]:
        """x, residual [T, H]."""
        x, stream = self.input_layernorm(x, residual)
        x, stream = self.post_attention_layernorm(self.attended(positions, x), stream)
        return self.mlp(x), stream

    def attended(self, positions: Tensor, x: Tensor) -> Tensor:
        """What attention adds to the stream [T, H]."""
        return self.self_attn(positions, x)


class Embedding(nn.Module):
    """The rows of one rank, looked up by ids that are moved to where they start."""

    def __init__(self, config: Config, team: Team) -> None:
        super().__init__()
        self.team = team
        self.weight = nn.Parameter(torch.zeros(config.vocabulary // team.size, config.hidden))

    def forward(self, ids: Tensor) -> Tensor:
        """ids [T] -> [T, H]."""
        if self.team.size == 1:
            return F.embedding(ids, self.weight)
        rows = self.weight.shape[0]
        start = self.team.rank * rows
        mine = (ids >= start) & (ids < start + rows)
        found = F.embedding((ids - start) * mine, self.weight)
        return summed(found * mine.unsqueeze(-1), self.team)


class Engine(nn.Module):
    """From ids and positions to logits, of which every rank has its part of the vocabulary."""

    def __init__(
        self,
        team: Team = ALONE,
        config: Config = CONFIG,
        attentions: Sequence[type[Attention]] = (Attention, Attention),
        mlps: Sequence[type[Mlp] | type[Experts]] = (Mlp, Mlp),
        **layers: Any,
    ) -> None:
        super().__init__()
        self.config, self.team = config, team
        self.embed_tokens = Embedding(config, team)
        layer = layers.get("layer", Layer)
        self.layers = nn.ModuleList(
            layer(config, attention(config, team), mlp(config, team))
            for attention, mlp in zip(attentions, mlps, strict=True)
        )
        self.norm = RMSNorm(config.hidden)
        self.lm_head = ColumnParallel(config.hidden, config.vocabulary, team)

    def forward(self, input_ids: Tensor, positions: Tensor) -> Tensor:
        """input_ids [T], positions [T] -> [T, V / ranks]."""
        x = self.embed_tokens(input_ids)
        residual: Tensor | None = None
        for layer in self.layers:
            x, residual = layer(positions, x, residual)
        x, _ = self.norm(x, residual)
        return self.lm_head(x)


def inputs(config: Config = CONFIG) -> tuple[Tensor, Tensor]:
    """Ids and positions, of which only the shapes matter."""
    return torch.zeros(config.tokens, dtype=torch.long), torch.zeros(config.tokens, dtype=torch.long)
