"""The ranks along an axis of the mesh, and what they do together, each with its backward pass.

Written as training frameworks write it: an autograd function for each collective, whose backward pass is the
collective that is its transpose, given how the result is used.
"""

# Autograd functions are called with what they like: PyTorch types none of it.
# pyright: reportIncompatibleMethodOverride=false

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import Tensor
from torch.autograd import Function


@dataclass(frozen=True, slots=True)
class Team:
    """Some ranks, seen from one of them. A team of one has no group and does nothing."""

    group: dist.ProcessGroup | None = None
    rank: int = 0
    size: int = 1

    @classmethod
    def of(cls, group: dist.ProcessGroup) -> "Team":
        """The members of a process group, seen from this rank."""
        return cls(group, dist.get_rank(group), dist.get_world_size(group))

    def shared(self, x: Tensor) -> Tensor:
        """What all hold alike, before each uses it in its own way: gradients add up."""
        return x if self.group is None else _Shared.apply(x, self)

    def summed(self, x: Tensor) -> Tensor:
        """The sum of what each holds, which all go on to use alike."""
        return x if self.group is None else _Summed.apply(x, self)

    def collected(self, x: Tensor, dim: int) -> Tensor:
        """All pieces in a row, which all go on to use alike."""
        return x if self.group is None else _Collected.apply(x, dim % x.ndim, self)

    def gathered(self, x: Tensor, dim: int) -> Tensor:
        """All pieces in a row, which each goes on to use in its own way: gradients add up."""
        return x if self.group is None else _Gathered.apply(x, dim % x.ndim, self)

    def scattered(self, x: Tensor, dim: int) -> Tensor:
        """The own piece of the sum of what each holds."""
        return x if self.group is None else _Scattered.apply(x, dim % x.ndim, self)

    def own(self, x: Tensor, dim: int) -> Tensor:
        """The own piece of what all hold alike."""
        return x if self.group is None else x.chunk(self.size, dim)[self.rank]

    def exchanged(self, x: Tensor, split: int, concat: int) -> Tensor:
        """Cut along one dimension, a piece to each; what arrives is put in a row along another."""
        if self.group is None:
            return x
        return _Exchanged.apply(x, split % x.ndim, concat % x.ndim, self)


def all_reduced(x: Tensor, team: Team, kind: str = "sum") -> Tensor:
    """Reduced, with no gradient."""
    return x if team.group is None else funcol.all_reduce(x, kind, team.group)


def all_gathered(x: Tensor, dim: int, team: Team) -> Tensor:
    """Put in a row, with no gradient."""
    return x if team.group is None else funcol.all_gather_tensor(x.contiguous(), dim, team.group)


def reduce_scattered(x: Tensor, dim: int, team: Team, kind: str = "sum") -> Tensor:
    """Reduced and cut, with no gradient."""
    return x if team.group is None else funcol.reduce_scatter_tensor(x.contiguous(), kind, dim, team.group)


def all_to_all(x: Tensor, split: int, concat: int, team: Team) -> Tensor:
    """Exchanged, with no gradient."""
    if team.group is None:
        return x
    sent = torch.stack(x.chunk(team.size, split))
    arrived = funcol.all_to_all_single(sent, None, None, team.group)
    return torch.cat(arrived.unbind(), concat)


class _Shared(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, team: Team) -> Tensor:
        ctx.team = team
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return all_reduced(grad, ctx.team), None


class _Summed(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, team: Team) -> Tensor:
        return all_reduced(x, team)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad, None


class _Collected(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, team: Team) -> Tensor:
        ctx.dim, ctx.team = dim, team
        return all_gathered(x, dim, team)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return ctx.team.own(grad, ctx.dim), None, None


class _Gathered(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, team: Team) -> Tensor:
        ctx.dim, ctx.team = dim, team
        return all_gathered(x, dim, team)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return reduce_scattered(grad, ctx.dim, ctx.team), None, None


class _Scattered(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, team: Team) -> Tensor:
        ctx.dim, ctx.team = dim, team
        return reduce_scattered(x, dim, team)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return all_gathered(grad, ctx.dim, ctx.team), None, None


class _Exchanged(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, split: int, concat: int, team: Team) -> Tensor:
        ctx.split, ctx.concat, ctx.team = split, concat, team
        return all_to_all(x, split, concat, team)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return all_to_all(grad, ctx.concat, ctx.split, ctx.team), None, None, None
