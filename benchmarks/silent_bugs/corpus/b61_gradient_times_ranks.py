"""B61: the loss is a sum over ranks, whose transpose is taken to be another sum over ranks."""

# Autograd functions are called with what they like: PyTorch types none of it.
# pyright: reportIncompatibleMethodOverride=false

from typing import Any

from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team, all_reduced
from silent_bugs.hosts_training import TWO_DATA_RANKS, Built, DataParallelStep, Groups, texts
from torch import Tensor
from torch.autograd import Function


class SummedBothWays(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, team: Team) -> Tensor:
        ctx.team = team
        return all_reduced(x, team)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return all_reduced(grad, ctx.team), None  # planted


class BuggyStep(DataParallelStep):
    def over_ranks(self, loss: Tensor) -> Tensor:
        return SummedBothWays.apply(loss, self.data)


def baseline() -> Built:
    return DataParallelStep(Team()), texts(1)


def buggy(rank: int, groups: Groups) -> Built:
    return BuggyStep(Team.of(groups["dp"])), texts(2)


def fixed(rank: int, groups: Groups) -> Built:
    return DataParallelStep(Team.of(groups["dp"])), texts(2)


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=TWO_DATA_RANKS)
