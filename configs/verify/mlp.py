"""A two-layer perceptron, and the same on several ranks: right, and with a bug that no shape shows.

scalify capture configs/verify/mlp.py:baseline -o mlp.pt
scalify capture configs/verify/mlp.py:sharded -o sharded.pt --mesh tp=4
scalify verify mlp.pt sharded.pt
"""

from collections.abc import Mapping

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.nn.functional as F
from torch import Tensor, nn

HIDDEN, INNER = 64, 256


class Mlp(nn.Module):
    """``down(gelu(up(x))) + bias``, of which one rank may hold a part."""

    def __init__(self, inner: int) -> None:
        super().__init__()
        self.up = nn.Linear(HIDDEN, inner, bias=False)
        self.down = nn.Linear(inner, HIDDEN, bias=False)
        self.bias = nn.Parameter(torch.zeros(HIDDEN))

    def forward(self, x: Tensor) -> Tensor:
        """x [B, H] -> [B, H]."""
        return self.down(F.gelu(self.up(x))) + self.bias


class Sharded(Mlp):
    """A part of the inner width on each rank; the parts are summed, then the bias is added."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        super().__init__(INNER // dist.get_world_size(group))
        self.group = group

    def forward(self, x: Tensor) -> Tensor:
        """x [B, H] -> [B, H]."""
        part = self.down(F.gelu(self.up(x)))
        return funcol.all_reduce(part, "sum", self.group) + self.bias


class BiasInEveryPart(Sharded):
    """The bias is added before the sum, and so counted once per rank."""

    def forward(self, x: Tensor) -> Tensor:
        """x [B, H] -> [B, H]."""
        part = self.down(F.gelu(self.up(x))) + self.bias
        return funcol.all_reduce(part, "sum", self.group)


Groups = Mapping[str, dist.ProcessGroup]


def baseline() -> tuple[nn.Module, tuple[Tensor]]:
    """On one device."""
    return Mlp(INNER), (torch.zeros(8, HIDDEN),)


def sharded(rank: int, groups: Groups) -> tuple[nn.Module, tuple[Tensor]]:
    """On the ranks of an axis ``tp``."""
    return Sharded(groups["tp"]), (torch.zeros(8, HIDDEN),)


def bias_in_every_part(rank: int, groups: Groups) -> tuple[nn.Module, tuple[Tensor]]:
    """The same with the bug."""
    return BiasInEveryPart(groups["tp"]), (torch.zeros(8, HIDDEN),)
