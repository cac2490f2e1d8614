"""B27, forward: the bias of an output projection is added by every rank to its part of the sum."""

import torch.nn.functional as F
from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import Attention, Row, Size
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_training import TWO_TENSOR_RANKS, Built, Groups, trained
from torch import Tensor


class BiasOfEach(Row):
    def forward(self, x: Tensor) -> Tensor:
        return self.team.summed(F.linear(x, self.weight, self.bias))  # planted


class ShareOfBias(Row):
    """Every rank adds its share of the bias, whose gradient is the sum of the shares'."""

    def forward(self, x: Tensor) -> Tensor:
        share = self.team.shared(self.bias) / self.team.size
        return self.team.summed(F.linear(x, self.weight, share))


class BuggyAttention(Attention):
    def __init__(self, size: Size, team: Team) -> None:
        super().__init__(size, team)
        self.o_proj = BiasOfEach(size.hidden, size.hidden, team)


class FixedAttention(Attention):
    def __init__(self, size: Size, team: Team) -> None:
        super().__init__(size, team)
        self.o_proj = ShareOfBias(size.hidden, size.hidden, team)


def baseline() -> Built:
    return trained(Team(), (Attention, Attention))


def buggy(rank: int, groups: Groups) -> Built:
    return trained(Team.of(groups["tp"]), (FixedAttention, BuggyAttention))


def fixed(rank: int, groups: Groups) -> Built:
    return trained(Team.of(groups["tp"]), (FixedAttention, FixedAttention))


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=TWO_TENSOR_RANKS, backward=True)
