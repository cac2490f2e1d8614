"""B10: the loss of tokens further on is divided by each rank's own count before the mean over ranks."""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import Column, DecoderBody, ids_of
from silent_bugs.hosts.ranks import Team, all_reduced
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from scalify.ir.mesh import Mesh

BATCH, TOKENS = 4, 6


class TwoTokenDecoder(DecoderBody):
    """Predicts the next token and the one after; of the latter the loss has a smaller weight."""

    def __init__(self, data: Team) -> None:
        super().__init__()
        self.data = data
        self.further_head = Column(self.size.hidden, self.size.vocabulary, self.team)

    def forward(self, ids: Tensor, labels: Tensor, further: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
        """ids, labels, further labels [B, T], which of them count -> the loss, and that of the next."""
        hidden = self.hidden(ids)
        of_next = self.per_token(self.lm_head(hidden), labels) * counted
        of_further = self.per_token(self.further_head(hidden), further) * counted
        loss = all_reduced(of_next.sum(), self.data) / all_reduced(counted.sum(), self.data)
        return loss + 0.25 * self.mean(of_further, counted), loss

    def per_token(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss [B, T] of labels."""
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view_as(labels)

    def mean(self, losses: Tensor, counted: Tensor) -> Tensor:
        """The mean over the tokens of all ranks that count."""
        total = all_reduced(torch.stack((losses.sum(), counted.sum())), self.data)
        return total[0] / total[1]


class BuggyDecoder(TwoTokenDecoder):
    def mean(self, losses: Tensor, counted: Tensor) -> Tensor:
        own = losses.sum() / counted.sum()  # planted
        return all_reduced(own, self.data, "avg")


def inputs(batch: int) -> tuple[Tensor, ...]:
    ids = ids_of(batch=batch, tokens=TOKENS)
    return ids, ids.clone(), ids.clone(), torch.ones(batch, TOKENS)


def baseline() -> tuple[nn.Module, tuple[Tensor, ...]]:
    return TwoTokenDecoder(Team()), inputs(BATCH)


def buggy(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return BuggyDecoder(Team.of(groups["dp"])), inputs(BATCH // 2)


def fixed(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return TwoTokenDecoder(Team.of(groups["dp"])), inputs(BATCH // 2)


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("dp", 2),)))
