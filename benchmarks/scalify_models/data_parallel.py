"""Training steps over parts of a batch: one after the other, or on ranks that hold parts of parameters."""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from scalify_models.blocks import INNER, WIDTH, Build, Groups
from scalify_models.regions import Summed
from torch import Tensor, nn
from torch.autograd import Function
from torch.distributed import ProcessGroup

ROWS, CLASSES = 16, 12
SHAPES = ((WIDTH, INNER), (INNER,), (INNER, WIDTH), (WIDTH, CLASSES))
SIZES = tuple(torch.Size(shape).numel() for shape in SHAPES)


def perceptron(x: Tensor, weights: tuple[Tensor, ...]) -> Tensor:
    """A norm, a residual perceptron and a head; x [N, W] -> logits [N, C]."""
    first, bias, second, head = weights
    normed = F.layer_norm(x, (WIDTH,))
    return (x + F.gelu(normed @ first + bias) @ second) @ head


class Weights(nn.Module):
    """A parameter of each shape, or what one rank holds of them."""

    def __init__(self, *, ranks: int = 1) -> None:
        super().__init__()
        self.first, self.bias, self.second, self.head = (
            nn.Parameter(torch.empty(shape[0] // ranks, *shape[1:])) for shape in SHAPES
        )

    def all(self) -> tuple[Tensor, ...]:
        """In order."""
        return self.first, self.bias, self.second, self.head


class WholeBatch(Weights):
    """Loss and gradients of the mean over the batch, by autograd in the step's own code."""

    def forward(self, x: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        loss = F.cross_entropy(perceptron(x, self.all()), target, reduction="sum") / ROWS
        return loss.detach(), *torch.autograd.grad(loss, self.all())


class Microbatches(Weights):
    """The same over parts of the batch, whose gradients are added up in ``.grad``."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, x: Tensor, target: Tensor) -> tuple[Tensor | None, ...]:
        total = torch.zeros((), device=x.device)
        for part, goal in zip(x.chunk(self.count), target.chunk(self.count), strict=True):
            loss = F.cross_entropy(perceptron(part, self.all()), goal, reduction="sum") / ROWS
            loss.backward()
            total += loss.detach()
        return total, *(weight.grad for weight in self.all())


class Unsharded(Function):
    """A parameter put together of the ranks' rows; its gradient goes back as a sum, cut into rows."""

    @staticmethod
    def forward(ctx: Any, shard: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        whole = shard.new_empty(shard.shape[0] * group.size(), *shard.shape[1:])
        dist.all_gather_single(whole, shard.contiguous(), group=group)
        return whole

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad = grads[0].contiguous()
        mine = grad.new_empty(grad.shape[0] // ctx.group.size(), *grad.shape[1:])
        dist.reduce_scatter_single(mine, grad, group=ctx.group)
        return mine, None


class FullySharded(Weights):
    """Every rank holds rows of each parameter and sees a part of the batch."""

    def __init__(self, group: ProcessGroup | None) -> None:
        super().__init__(ranks=1 if group is None else group.size())
        self.group = group

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        if self.group is None:
            return F.cross_entropy(perceptron(x, self.all()), target, reduction="sum") / ROWS
        weights = tuple(Unsharded.apply(weight, self.group) for weight in self.all())
        loss = F.cross_entropy(perceptron(x, weights), target, reduction="sum") / ROWS
        return Summed.apply(loss, self.group)


class Flat(nn.Module):
    """All parameters in one, of which every rank holds a piece."""

    def __init__(self, group: ProcessGroup | None) -> None:
        super().__init__()
        self.group = group
        self.flat = nn.Parameter(torch.empty(sum(SIZES) // (1 if group is None else group.size())))

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        flat = self.flat if self.group is None else Unsharded.apply(self.flat, self.group)
        weights = tuple(part.view(shape) for part, shape in zip(flat.split(SIZES), SHAPES, strict=True))
        loss = F.cross_entropy(perceptron(x, weights), target, reduction="sum") / ROWS
        return loss if self.group is None else Summed.apply(loss, self.group)


def _inputs(rows: int) -> tuple[Tensor, Tensor]:
    return torch.empty(rows, WIDTH, device="meta"), torch.empty(rows, dtype=torch.long, device="meta")


def whole_batch() -> object:
    """One step over the whole batch."""
    return WholeBatch().to("meta"), _inputs(ROWS)


def microbatches(count: int) -> Build:
    """One step over parts of the batch, on one device."""
    return lambda: (Microbatches(count).to("meta"), _inputs(ROWS))


def sharded_alone(kind: Callable[[ProcessGroup | None], nn.Module]) -> Build:
    """On one device."""
    return lambda: (kind(None).to("meta"), _inputs(ROWS))


def sharded_in_parts(kind: Callable[[ProcessGroup | None], nn.Module]) -> Build:
    """On the ranks of axis ``dp``."""

    def build(rank: int, groups: Groups) -> object:
        return kind(groups["dp"]).to("meta"), _inputs(ROWS // groups["dp"].size())

    return build
