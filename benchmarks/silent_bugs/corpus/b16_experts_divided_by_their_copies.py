"""B16: an expert sees the tokens of all ranks, and its gradient is divided by the number of its copies, 1."""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import ALONE, SIZE, Attention, DecoderBody, Layer, Mlp, Size, ids_of
from silent_bugs.hosts.ranks import Team, all_reduced
from silent_bugs.hosts.training import gradients, token_losses
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from scalify.ir.mesh import Mesh

EXPERTS, SEATS, BATCH = 2, 3, 4


class Experts(Mlp):
    """Seats at experts are mixtures of a text's tokens; experts are on different ranks."""

    def __init__(self, size: Size, team: Team) -> None:
        nn.Module.__init__(self)
        self.team = team
        self.seats = nn.Parameter(torch.zeros(EXPERTS, SEATS, size.hidden))
        own = EXPERTS // team.size
        self.up = nn.Parameter(torch.zeros(own, size.hidden, size.intermediate))
        self.down = nn.Parameter(torch.zeros(own, size.intermediate, size.hidden))

    def forward(self, x: Tensor) -> Tensor:
        """x [B / ranks, T, H] -> [B / ranks, T, H]."""
        scores = torch.einsum("bth,esh->btes", x, self.seats)
        sent = torch.einsum("btes,bth->ebsh", scores.softmax(1), x)
        arrived = self.team.exchanged(sent, 0, 1)
        inner = F.silu(torch.einsum("ebsh,ehi->ebsi", arrived, self.up))
        back = self.team.exchanged(torch.einsum("ebsi,eih->ebsh", inner, self.down), 1, 0)
        shares = scores.flatten(2).softmax(-1).view_as(scores)
        return torch.einsum("btes,ebsh->bth", shares, back)


class SparseDecoder(DecoderBody):
    """All but the experts is on every rank."""

    def __init__(self, data: Team) -> None:
        super().__init__(attentions=(), mlps=())
        for layer in (self.layer(data), self.layer(data)):
            self.layers.append(layer)

    def layer(self, data: Team) -> nn.Module:
        """Attention, and experts in the place of a gated perceptron."""
        return Layer(SIZE, Attention(SIZE, ALONE), Experts(SIZE, data))


class MeanStep(nn.Module):
    """The mean loss of all texts, and its gradients: those of experts are complete on their rank."""

    def __init__(self, data: Team) -> None:
        super().__init__()
        self.data = data
        self.model = SparseDecoder(data)
        self.is_expert = [name.endswith((".up", ".down")) for name, _ in self.model.named_parameters()]

    def forward(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        """ids, labels [B / ranks, T] -> the loss, and the gradient of every parameter."""
        loss = token_losses(self.model.logits(ids), labels).mean()
        grads = gradients(loss, self.model)
        reduced = (
            self.of_expert(grad) if is_expert else all_reduced(grad, self.data) / self.data.size
            for grad, is_expert in zip(grads, self.is_expert, strict=True)
        )
        return all_reduced(loss.detach(), self.data) / self.data.size, *reduced

    def of_expert(self, grad: Tensor) -> Tensor:
        """The mean over ranks: of each, what its tokens contribute has arrived already."""
        return grad / self.data.size


class BuggyStep(MeanStep):
    def of_expert(self, grad: Tensor) -> Tensor:
        copies = self.data.size // EXPERTS
        return grad / copies  # planted


def inputs(ranks: int) -> tuple[Tensor, ...]:
    return ids_of(batch=BATCH // ranks), ids_of(batch=BATCH // ranks)


def baseline() -> tuple[nn.Module, tuple[Tensor, ...]]:
    return MeanStep(Team()), inputs(1)


def buggy(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return BuggyStep(Team.of(groups["ep"])), inputs(2)


def fixed(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return MeanStep(Team.of(groups["ep"])), inputs(2)


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("ep", 2),)))
