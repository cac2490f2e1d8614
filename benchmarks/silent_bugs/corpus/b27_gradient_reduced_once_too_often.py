"""B27, backward: the gradient of a sum over ranks, which all ranks hold, is summed over ranks again."""

# Autograd functions are called with what they like: PyTorch types none of it.
# pyright: reportIncompatibleMethodOverride=false

from typing import Any

import torch.nn.functional as F
from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import Attention, Row, Size
from silent_bugs.hosts.ranks import Team, all_reduced
from silent_bugs.hosts_training import TWO_TENSOR_RANKS, Built, Groups, trained
from torch import Tensor
from torch.autograd import Function


class Promoted(Function):
    """A bias that all hold, taken to be a pending sum: every rank has its share."""

    @staticmethod
    def forward(ctx: Any, product: Tensor, bias: Tensor, team: Team) -> Tensor:
        ctx.team = team
        return product + bias / team.size

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """The bias is held by all: its gradient is whole, as is that of the product."""
        return grad, grad.flatten(0, -2).sum(0), None


class PromotedTwice(Promoted):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        whole = all_reduced(grad, ctx.team)  # planted
        return whole, grad.flatten(0, -2).sum(0), None


class FixedRow(Row):
    promoted: type[Promoted] = Promoted

    def forward(self, x: Tensor) -> Tensor:
        return self.team.summed(self.promoted.apply(F.linear(x, self.weight), self.bias, self.team))


class BuggyRow(FixedRow):
    promoted = PromotedTwice


class FixedAttention(Attention):
    def __init__(self, size: Size, team: Team) -> None:
        super().__init__(size, team)
        self.o_proj = FixedRow(size.hidden, size.hidden, team)


class BuggyAttention(Attention):
    def __init__(self, size: Size, team: Team) -> None:
        super().__init__(size, team)
        self.o_proj = BuggyRow(size.hidden, size.hidden, team)


def baseline() -> Built:
    return trained(Team(), (Attention, Attention))


def buggy(rank: int, groups: Groups) -> Built:
    return trained(Team.of(groups["tp"]), (FixedAttention, BuggyAttention))


def fixed(rank: int, groups: Groups) -> Built:
    return trained(Team.of(groups["tp"]), (FixedAttention, FixedAttention))


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=TWO_TENSOR_RANKS, backward=True)
