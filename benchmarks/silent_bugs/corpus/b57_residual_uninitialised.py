"""B57: a fused all-reduce and norm needs a residual; where there is none it gets memory that nobody wrote."""

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_inference import (
    TWO_RANKS,
    Attention,
    Built,
    Config,
    Engine,
    Groups,
    Layer,
    RowParallel,
    inputs,
    normed,
    summed,
)
from torch import Tensor, nn


class PostNormLayer(Layer):
    """What attention puts out is normed by itself before it joins the stream."""

    def __init__(self, config: Config, attention: nn.Module, mlp: nn.Module) -> None:
        super().__init__(config, attention, mlp)
        self.output_gain = nn.Parameter(torch.ones(config.hidden))
        assert isinstance(attention, Attention)
        self.team = attention.team

    def attended(self, positions: Tensor, x: Tensor) -> Tensor:
        return normed(self.self_attn(positions, x), self.output_gain)


class PendingRow(RowParallel):
    """Leaves the sum over ranks to what follows."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight)


class PendingAttention(Attention):
    """Puts out what is still to be summed."""

    def __init__(self, config: Config, team: Team) -> None:
        super().__init__(config, team)
        self.o_proj = PendingRow(config.heads * config.head_dim, config.hidden, team)


def all_reduce_and_norm(x: Tensor, residual: Tensor, gain: Tensor, team: Team) -> Tensor:
    """The fused kernel: always with a residual."""
    return normed(summed(x, team) + residual, gain)


class FusedLayer(PostNormLayer):
    """Sum and norm in one kernel, with a residual of zeros."""

    def attended(self, positions: Tensor, x: Tensor) -> Tensor:
        pending = self.self_attn(positions, x)
        return all_reduce_and_norm(pending, torch.zeros_like(pending), self.output_gain, self.team)


class BuggyLayer(FusedLayer):
    def attended(self, positions: Tensor, x: Tensor) -> Tensor:
        pending = self.self_attn(positions, x)
        residual = torch.empty_like(pending)  # planted
        return all_reduce_and_norm(pending, residual, self.output_gain, self.team)


def baseline() -> Built:
    return Engine(layer=PostNormLayer), inputs()


def ranks(groups: Groups, layer: type[Layer]) -> Built:
    team = Team.of(groups["tp"])
    return Engine(team, attentions=(PendingAttention, PendingAttention), layer=layer), inputs()


def buggy(rank: int, groups: Groups) -> Built:
    return ranks(groups, BuggyLayer)


def fixed(rank: int, groups: Groups) -> Built:
    return ranks(groups, FusedLayer)


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=TWO_RANKS)
