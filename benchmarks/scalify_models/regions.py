"""Collectives that autograd knows of: at the edges of the regions that ranks compute in parts.

What is summed forwards is copied backwards, what is gathered forwards is scattered backwards, and the other
way round.
"""

from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import Tensor
from torch.autograd import Function
from torch.distributed import ProcessGroup


class Copied(Function):
    """The same on all ranks forwards; backwards the ranks' gradients are summed, in place."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        total = grads[0].clone()
        dist.all_reduce(total, group=ctx.group)
        return total, None


class Summed(Function):
    """The ranks' parts are summed forwards; backwards all have the same gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: ProcessGroup) -> Tensor:
        total = x.clone()
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return grads[0], None


def _gathered(x: Tensor, dim: int, group: ProcessGroup) -> Tensor:
    return funcol.all_gather_single(x.contiguous(), dim, group)


def _scattered(x: Tensor, dim: int, group: ProcessGroup) -> Tensor:
    return funcol.reduce_scatter_single(x.contiguous(), "sum", dim, group)


class Gathered(Function):
    """Pieces along a dimension become whole; backwards the ranks' gradients are summed and cut again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, group: ProcessGroup) -> Tensor:
        ctx.dim, ctx.group = dim, group
        return _gathered(x, dim, group)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return _scattered(grads[0], ctx.dim, ctx.group), None, None


class Scattered(Function):
    """The ranks' parts are summed and cut along a dimension; backwards the pieces are put together."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, group: ProcessGroup) -> Tensor:
        ctx.dim, ctx.group = dim, group
        return _scattered(x, dim, group)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return _gathered(grads[0], ctx.dim, ctx.group), None, None


class Exchanged(Function):
    """Blocks of the first dimension change places with the other ranks'; backwards they return."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        return _exchanged(x, group)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return _exchanged(grads[0], ctx.group), None


def _exchanged(x: Tensor, group: ProcessGroup) -> Tensor:
    result = torch.empty_like(x)
    dist.all_to_all_single(result, x.contiguous(), group=group)
    return result


class Passed(Function):
    """Every rank has what the one before it had; backwards, what the one after it has."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        return _passed(x, 1, group)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return _passed(grads[0], -1, ctx.group), None


def _passed(x: Tensor, step: int, group: ProcessGroup) -> Tensor:
    """Once around the ring, by sending and receiving."""
    rank, count = dist.get_rank(group), dist.get_world_size(group)
    result = torch.empty_like(x)
    peers = [dist.get_global_rank(group, (rank + way) % count) for way in (step, -step)]
    for work in dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, x.contiguous(), peers[0], group),
            dist.P2POp(dist.irecv, result, peers[1], group),
        ]
    ):
        work.wait()
    return result
