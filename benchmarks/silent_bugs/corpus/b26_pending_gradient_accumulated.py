"""B26: the gradient from a head cut over the vocabulary is added up, chunk by chunk, as if it were whole."""

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import Decoder, ids_of, vocabulary_loss
from silent_bugs.hosts.ranks import Team, all_reduced
from silent_bugs.hosts_training import TWO_TENSOR_RANKS, Built, Groups
from torch import Tensor, nn

CHUNKS = 2


class ChunkedLoss(nn.Module):
    """The head and its loss, some tokens at a time; the rest of the model is differentiated once."""

    def __init__(self, team: Team) -> None:
        super().__init__()
        self.team = team
        self.model = Decoder(team)

    def forward(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        """ids, labels [B, T] -> the loss, and the gradient of every parameter."""
        hidden = self.model.hidden(ids)
        head = self.model.lm_head.weight
        accumulated, of_head, total = (
            torch.zeros_like(hidden),
            torch.zeros_like(head),
            ids.new_zeros(()).float(),
        )
        for x, target, sums in zip(
            hidden.detach().chunk(CHUNKS, 1),
            labels.chunk(CHUNKS, 1),
            accumulated.chunk(CHUNKS, 1),
            strict=True,
        ):
            chunk = x.requires_grad_()
            loss = vocabulary_loss(chunk @ head.t(), target, self.team).sum() / labels.numel()
            grad, grad_of_head = torch.autograd.grad(loss, [chunk, head])
            self.add(sums, grad)
            of_head = of_head + grad_of_head
            total = total + loss.detach()
        rest = [weight for weight in self.model.parameters() if weight is not head]
        grads = torch.autograd.grad(hidden, rest, accumulated)
        return total, of_head, *grads

    def add(self, sums: Tensor, grad: Tensor) -> None:
        """A chunk's gradient to those of its tokens: every rank has the part of its vocabulary."""
        sums.add_(all_reduced(grad, self.team))


class BuggyLoss(ChunkedLoss):
    def add(self, sums: Tensor, grad: Tensor) -> None:
        sums.add_(grad)  # planted


def baseline() -> Built:
    return ChunkedLoss(Team()), (ids_of(), ids_of())


def buggy(rank: int, groups: Groups) -> Built:
    return BuggyLoss(Team.of(groups["tp"])), (ids_of(), ids_of())


def fixed(rank: int, groups: Groups) -> Built:
    return ChunkedLoss(Team.of(groups["tp"])), (ids_of(), ids_of())


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=TWO_TENSOR_RANKS)
