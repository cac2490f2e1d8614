"""B24: two ranks hold two texts and one text, and their means are averaged as if they were equal."""

from collections.abc import Mapping

import torch.nn.functional as F
from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import SIZE, DecoderBody, ids_of
from silent_bugs.hosts.ranks import Team, all_reduced
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from scalify.ir.mesh import Mesh

TEXTS = (2, 1)


class EvaluatedDecoder(DecoderBody):
    """Gives the mean loss over all tokens of all texts."""

    def __init__(self, data: Team) -> None:
        super().__init__()
        self.data = data

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        """ids, labels [texts, T] -> a loss."""
        logits = self.logits(ids)
        losses = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
        return self.mean(losses)

    def mean(self, losses: Tensor) -> Tensor:
        """Over the losses of all ranks."""
        return all_reduced(losses.sum(), self.data) / (sum(TEXTS) * SIZE.tokens)


class BuggyDecoder(EvaluatedDecoder):
    def mean(self, losses: Tensor) -> Tensor:
        return all_reduced(losses.mean(), self.data, "avg")  # planted


def inputs(batch: int) -> tuple[Tensor, ...]:
    return ids_of(batch=batch), ids_of(batch=batch)


def baseline() -> tuple[nn.Module, tuple[Tensor, ...]]:
    return EvaluatedDecoder(Team()), inputs(sum(TEXTS))


def buggy(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return BuggyDecoder(Team.of(groups["dp"])), inputs(TEXTS[rank])


def fixed(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return EvaluatedDecoder(Team.of(groups["dp"])), inputs(TEXTS[rank])


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("dp", 2),)))
