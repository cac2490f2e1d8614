"""B17: updated shards are copied back by the rank's place in another group: some weights go stale."""

from collections.abc import Mapping

import torch
import torch.distributed as dist
from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team, all_gathered, reduce_scattered
from silent_bugs.hosts.training import adam, flat
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from scalify.ir.mesh import Mesh

SHAPES = ((8, 6), (8,), (12, 8), (12,), (4, 12), (4,), (6, 4), (6,), (8, 6), (8,), (6, 8), (6,), (6, 6), (4,))
RANKS = 4


class ShardedAdam(nn.Module):
    """Every rank holds all weights, in one row, and updates its own part of them in full precision."""

    def __init__(self, data: Team, experts: Team) -> None:
        super().__init__()
        self.data, self.experts = data, experts
        self.weights = nn.ParameterList([nn.Parameter(torch.zeros(shape)) for shape in SHAPES])
        self.size = sum(weight.numel() for weight in self.weights) // data.size

    def forward(self, grads: list[Tensor], mean: Tensor, square: Tensor) -> tuple[Tensor, ...]:
        """grads [texts, *shape] of each weight; mean, square [N / ranks] -> weights, mean, square."""
        own = [grad.mean(0) for grad in grads]
        row = flat(list(self.weights)).detach()
        grad = reduce_scattered(flat(own), 0, self.data) / self.data.size
        updated, mean, square = adam(self.data.own(row, 0), grad, mean, square)
        row = self.gathered(self.written(row, updated))
        pieces = row.split([weight.numel() for weight in self.weights])
        whole = [piece.view(weight.shape) for piece, weight in zip(pieces, self.weights, strict=True)]
        return *whole, mean, square

    def written(self, row: Tensor, updated: Tensor) -> Tensor:
        """All weights, of which the own part is the updated one."""
        row = row.clone()
        row.narrow(0, self.data.rank * self.size, self.size).copy_(updated)
        return row

    def gathered(self, row: Tensor) -> Tensor:
        """All weights, each part of them from the rank that has updated it."""
        return all_gathered(self.data.own(row, 0), 0, self.data)


class BuggyAdam(ShardedAdam):
    def written(self, row: Tensor, updated: Tensor) -> Tensor:
        row = row.clone()
        row.narrow(0, self.experts.rank * self.size, self.size).copy_(updated)  # planted
        return row


def inputs(ranks: int) -> tuple[object, ...]:
    texts, size = RANKS // ranks, sum(torch.Size(shape).numel() for shape in SHAPES) // ranks
    return [torch.zeros(texts, *shape) for shape in SHAPES], torch.zeros(size), torch.zeros(size)


def _teams(groups: Mapping[str, ProcessGroup]) -> tuple[Team, Team]:
    assert dist.group.WORLD is not None
    return Team.of(dist.group.WORLD), Team.of(groups["edp"])


def baseline() -> tuple[nn.Module, tuple[object, ...]]:
    return ShardedAdam(Team(), Team()), inputs(1)


def buggy(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[object, ...]]:
    return BuggyAdam(*_teams(groups)), inputs(RANKS)


def fixed(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[object, ...]]:
    return ShardedAdam(*_teams(groups)), inputs(RANKS)


RELATIONS = """
[inputs.mean]
shard = { dim = 0, axes = ["edp", "ep"] }
[inputs.square]
shard = { dim = 0, axes = ["edp", "ep"] }
"""
ENTRY = Entry(
    baseline=baseline,
    buggy=buggy,
    fixed=fixed,
    mesh=Mesh(axes=(("edp", 2), ("ep", 2))),
    relations=RELATIONS,
)
