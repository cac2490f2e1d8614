"""B02: the loss is multiplied by the number of ranks for the sake of a mean that is no longer taken."""

from collections.abc import Mapping

from silent_bugs.entry import Entry
from silent_bugs.hosts.data_parallel import SequenceDecoder
from silent_bugs.hosts.decoder import SIZE, ids_of
from silent_bugs.hosts.ranks import Team, all_reduced
from silent_bugs.hosts.training import gradients, token_losses
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from scalify.ir.mesh import Mesh


class PerTokenStep(nn.Module):
    """The loss by token, and gradients: both are summed over ranks and divided by all tokens."""

    def __init__(self, sequence: Team) -> None:
        super().__init__()
        self.sequence = sequence
        self.model = SequenceDecoder(sequence)

    def forward(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        """ids, labels [B, T / ranks] -> the loss, and the gradient of every parameter."""
        total = token_losses(self.model.logits(ids), labels).sum()
        tokens = labels.numel() * self.sequence.size
        grads = gradients(self.to_differentiate(total), self.model)
        summed = (all_reduced(grad, self.sequence) for grad in grads)
        return all_reduced(total.detach(), self.sequence) / tokens, *(grad / tokens for grad in summed)

    def to_differentiate(self, total: Tensor) -> Tensor:
        """The loss that gradients are taken of."""
        return total


class BuggyStep(PerTokenStep):
    def to_differentiate(self, total: Tensor) -> Tensor:
        return total * self.sequence.size  # planted


def inputs(ranks: int) -> tuple[Tensor, ...]:
    return ids_of(tokens=SIZE.tokens // ranks), ids_of(tokens=SIZE.tokens // ranks)


def baseline() -> tuple[nn.Module, tuple[Tensor, ...]]:
    return PerTokenStep(Team()), inputs(1)


def buggy(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return BuggyStep(Team.of(groups["cp"])), inputs(2)


def fixed(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return PerTokenStep(Team.of(groups["cp"])), inputs(2)


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("cp", 2),)))
