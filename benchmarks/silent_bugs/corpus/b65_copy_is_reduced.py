"""B65: in the backward pass a contiguous copy is summed over ranks, and the part itself is returned."""

# Autograd functions are called with what they like: PyTorch types none of it.
# pyright: reportIncompatibleMethodOverride=false

from typing import Any

import torch.distributed as dist
from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import Column, Decoder, Mlp, Size
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_controls import Trained, ids_and_labels
from silent_bugs.hosts_inference import TWO_RANKS, Built, Groups
from torch import Tensor
from torch.autograd import Function


class _Shared(Function):
    """The same on all ranks, which each use in their own way."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, team: Team) -> Tensor:
        ctx.team = team
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        total = grad.contiguous()
        dist.all_reduce(total, group=ctx.team.group)
        return total, None


class _SharedByCopy(_Shared):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        dist.all_reduce(grad.contiguous(), group=ctx.team.group)  # planted
        return grad, None


class TurnedColumn(Column):
    """Multiplies with what is transposed, so that gradients are transposed too."""

    shared: type[Function] = _Shared

    def forward(self, x: Tensor) -> Tensor:
        turned = x.transpose(-1, -2)
        if self.team.group is not None:
            turned = self.shared.apply(turned, self.team)
        assert isinstance(turned, Tensor)
        return (self.weight @ turned).transpose(-1, -2)


class ColumnByCopy(TurnedColumn):
    shared = _SharedByCopy


class TurnedMlp(Mlp):
    """The up projection takes the hidden state transposed."""

    column: type[Column] = TurnedColumn

    def __init__(self, size: Size, team: Team) -> None:
        super().__init__(size, team)
        self.up_proj = self.column(size.hidden, size.intermediate, team)


class MlpByCopy(TurnedMlp):
    column = ColumnByCopy


def baseline() -> Built:
    return Trained(Decoder(mlps=(TurnedMlp, TurnedMlp))), ids_and_labels()


def buggy(rank: int, groups: Groups) -> Built:
    return Trained(Decoder(Team.of(groups["tp"]), mlps=(TurnedMlp, MlpByCopy))), ids_and_labels()


def fixed(rank: int, groups: Groups) -> Built:
    return Trained(Decoder(Team.of(groups["tp"]), mlps=(TurnedMlp, TurnedMlp))), ids_and_labels()


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=TWO_RANKS, backward=True)
