"""B09: a vocabulary-parallel loss of logits that are gathered already: too large by log(ranks)."""

from collections.abc import Mapping

from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import ALONE, DecoderBody, ids_of, vocabulary_loss
from silent_bugs.hosts.ranks import Team, all_gathered
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from scalify.ir.mesh import Mesh


class LabelledDecoder(DecoderBody):
    """Gives logits of the whole vocabulary, and the loss of the labels."""

    def forward(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """ids, labels [B, T] -> logits [B, T, V] and a loss."""
        logits = all_gathered(self.logits(ids), -1, self.team)
        return logits, self.loss(logits, labels).mean()

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss [B, T] of labels."""
        return vocabulary_loss(logits, labels, ALONE)


class BuggyDecoder(LabelledDecoder):
    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        return vocabulary_loss(logits, labels, self.team)  # planted


def baseline() -> tuple[nn.Module, tuple[Tensor, ...]]:
    return LabelledDecoder(), (ids_of(), ids_of())


def buggy(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return BuggyDecoder(Team.of(groups["tp"])), (ids_of(), ids_of())


def fixed(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return LabelledDecoder(Team.of(groups["tp"])), (ids_of(), ids_of())


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("tp", 2),)))
