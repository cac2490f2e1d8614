"""B15: weights that all ranks hold are marked as cut: their gradients enter the norm once per rank."""

from collections.abc import Mapping, Sequence

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import Decoder, ids_of, vocabulary_loss
from silent_bugs.hosts.ranks import Team, all_reduced
from silent_bugs.hosts.training import gradients
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from scalify.ir.mesh import Mesh


class ClippedStep(nn.Module):
    """Gradients, made smaller where all of them together are longer than one."""

    def __init__(self, team: Team) -> None:
        super().__init__()
        self.team = team
        self.model = Decoder(team)

    def forward(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        """ids, labels [B, T] -> the gradients' norm, and gradients of that norm at most."""
        loss = vocabulary_loss(self.model.logits(ids), labels, self.team).mean()
        grads = gradients(loss, self.model)
        norm = self.norm(grads)
        factor = torch.clamp(1.0 / (norm + 1e-6), max=1.0)
        return norm, *(grad * factor for grad in grads)

    def norm(self, grads: Sequence[Tensor]) -> Tensor:
        """Of all gradients, in the optimiser's groups: ranks have parts of matrices, and all of vectors."""
        matrices = torch.stack([grad.square().sum() for grad in grads if grad.ndim > 1]).sum()
        vectors = torch.stack([grad.square().sum() for grad in grads if grad.ndim == 1]).sum()
        return self.together(matrices, vectors).sqrt()

    def together(self, matrices: Tensor, vectors: Tensor) -> Tensor:
        """The sum of squares over all ranks."""
        return all_reduced(matrices, self.team) + vectors


class BuggyStep(ClippedStep):
    def together(self, matrices: Tensor, vectors: Tensor) -> Tensor:
        return all_reduced(matrices + vectors, self.team)  # planted


def baseline() -> tuple[nn.Module, tuple[Tensor, ...]]:
    return ClippedStep(Team()), (ids_of(), ids_of())


def buggy(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return BuggyStep(Team.of(groups["tp"])), (ids_of(), ids_of())


def fixed(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return ClippedStep(Team.of(groups["tp"])), (ids_of(), ids_of())


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("tp", 2),)))
