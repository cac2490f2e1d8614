"""B06: a tied weight's gradient is reduced over data ranks before it is summed over stages."""

from collections.abc import Mapping

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team, all_gathered, all_reduced, reduce_scattered
from silent_bugs.hosts.training import adam, flat
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from scalify.ir.mesh import Mesh

ROWS, WIDTH, LAYERS = 8, 4, ("up", "down", "gate")
STAGES = DATA = 2


class TiedStep(nn.Module):
    """An optimiser's step on some stages. The first and the last one hold the tied weight.

    Of gradients there is one buffer a stage, in the order of its weights: the tied one is first in the first
    stage and last in the last one. Data ranks update a part of the buffer each.
    """

    def __init__(self, stages: tuple[int, ...], data: Team, pipeline: Team) -> None:
        super().__init__()
        self.stages, self.data, self.pipeline = stages, data, pipeline
        names = [f"{name}{stage}" for stage in stages for name in LAYERS]
        self.tied = nn.Parameter(torch.zeros(ROWS, WIDTH))
        self.layers = nn.ParameterDict({name: nn.Parameter(torch.zeros(ROWS, WIDTH)) for name in names})

    def forward(self, tied_grads: Tensor, grads: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Gradients [ranks, rows, width] -> the tied weight, and the sum of all other weights' squares."""
        own = {name: all_reduced(grad.mean(0), self.data, "avg") for name, grad in grads.items()}
        weight = self.updated(self.tied, self.tied_gradient(tied_grads, own))
        others = [self.updated(self.layers[name], own[name]).square().sum() for name in own]
        return weight, all_reduced(torch.stack(others).sum(), self.pipeline)

    def updated(self, weight: Tensor, grad: Tensor) -> Tensor:
        """After a first step, before which there was none."""
        return adam(weight.detach(), grad, torch.zeros_like(grad), torch.zeros_like(grad))[0]

    def tied_gradient(self, tied: Tensor, own: Mapping[str, Tensor]) -> Tensor:
        """Of the tied weight, over all stages and data ranks."""
        if self.data.size == 1:
            return (tied[:DATA] + tied[DATA:]).mean(0)
        summed = all_reduced(tied.mean(0), self.pipeline)
        return self.whole(self.reduced(self.buffer(summed, own)))

    def buffer(self, tied: Tensor, own: Mapping[str, Tensor]) -> Tensor:
        """The tied weight's gradient and one of the stage's own, in the order of the stage's weights."""
        other = own[f"{LAYERS[0]}{self.stages[0]}"]
        return flat([tied, other] if self.stages[0] == 0 else [other, tied])

    def reduced(self, buffer: Tensor) -> Tensor:
        """The buffer, of which the own part is the mean over data ranks."""
        part = reduce_scattered(buffer, 0, self.data) / self.data.size
        parts = list(buffer.chunk(self.data.size))
        parts[self.data.rank] = part
        return torch.cat(parts)

    def whole(self, buffer: Tensor) -> Tensor:
        """The tied weight's gradient, from the data rank that has reduced it."""
        parts = all_gathered(self.data.own(buffer, 0), 0, self.data).chunk(self.data.size)
        return parts[0 if self.stages[0] == 0 else -1].view(ROWS, WIDTH)


class BuggyStep(TiedStep):
    def tied_gradient(self, tied: Tensor, own: Mapping[str, Tensor]) -> Tensor:
        buffer = self.reduced(self.buffer(tied.mean(0), own))
        at = 0 if self.stages[0] == 0 else -1
        parts = list(buffer.chunk(self.data.size))
        parts[at] = all_reduced(parts[at], self.pipeline)  # planted
        return self.whole(torch.cat(parts))


def inputs(ranks: int, stages: tuple[int, ...]) -> tuple[object, ...]:
    names = [f"{name}{stage}" for stage in stages for name in LAYERS]
    copies = DATA if ranks == 1 else 1
    tied = torch.zeros(STAGES * DATA // ranks, ROWS, WIDTH)
    return tied, {name: torch.zeros(copies, ROWS, WIDTH) for name in names}


def baseline() -> tuple[nn.Module, tuple[object, ...]]:
    return TiedStep((0, 1), Team(), Team()), inputs(1, (0, 1))


def _on_ranks(
    step: type[TiedStep], groups: Mapping[str, ProcessGroup]
) -> tuple[nn.Module, tuple[object, ...]]:
    data, pipeline = Team.of(groups["dp"]), Team.of(groups["pp"])
    stages = (pipeline.rank,)
    return step(stages, data, pipeline), inputs(STAGES * DATA, stages)


def buggy(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[object, ...]]:
    return _on_ranks(BuggyStep, groups)


def fixed(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[object, ...]]:
    return _on_ranks(TiedStep, groups)


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("pp", 2), ("dp", 2))))
