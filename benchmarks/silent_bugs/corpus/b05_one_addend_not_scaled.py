"""B05: the scale of losses counts the context ranks; one loss makes up for them, the second does not."""

from collections.abc import Mapping

from silent_bugs.entry import Entry
from silent_bugs.hosts.data_parallel import SequenceDecoder
from silent_bugs.hosts.decoder import SIZE, Column, ids_of
from silent_bugs.hosts.ranks import Team, all_reduced
from silent_bugs.hosts.training import Attached, gradients, token_losses
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from scalify.ir.mesh import Mesh

BATCHES = 2
WEIGHT = 0.3


class TwoLossDecoder(SequenceDecoder):
    """Learns the next token, and by a second head the one after it."""

    def __init__(self, sequence: Team) -> None:
        super().__init__(sequence)
        self.further_head = Column(self.size.hidden, self.size.vocabulary, self.team)


class TwoLossStep(nn.Module):
    """Gradients of both losses, of which the second one joins where the first one's gradient passes."""

    def __init__(self, sequence: Team) -> None:
        super().__init__()
        self.sequence = sequence
        self.model = TwoLossDecoder(sequence)

    def forward(self, ids: Tensor, labels: Tensor, further: Tensor) -> tuple[Tensor, ...]:
        """ids, labels and further labels [B, T / ranks] -> the loss, and the gradient of every parameter."""
        ranks = self.sequence.size
        tokens = labels.numel() * ranks
        scale = 1 / (BATCHES * ranks)
        hidden = self.model.hidden(ids)
        second = token_losses(self.model.further_head(hidden), further).sum() / tokens
        hidden = self.attached(hidden, second, scale)
        loss = token_losses(self.model.lm_head(hidden), labels).sum() / tokens
        grads = gradients(loss * ranks * scale, self.model)
        return all_reduced(loss.detach(), self.sequence), *(all_reduced(g, self.sequence) for g in grads)

    def attached(self, hidden: Tensor, second: Tensor, scale: float) -> Tensor:
        """With the second loss, which ranks sum up."""
        return Attached.apply(hidden, WEIGHT * second * self.sequence.size, scale)


class BuggyStep(TwoLossStep):
    def attached(self, hidden: Tensor, second: Tensor, scale: float) -> Tensor:
        return Attached.apply(hidden, WEIGHT * second, scale)  # planted


def inputs(ranks: int) -> tuple[Tensor, ...]:
    ids = ids_of(tokens=SIZE.tokens // ranks)
    return ids, ids.clone(), ids.clone()


def baseline() -> tuple[nn.Module, tuple[Tensor, ...]]:
    return TwoLossStep(Team()), inputs(1)


def buggy(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return BuggyStep(Team.of(groups["cp"])), inputs(2)


def fixed(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return TwoLossStep(Team.of(groups["cp"])), inputs(2)


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("cp", 2),)))
