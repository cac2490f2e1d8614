"""B31: what was accumulated is divided by the number of micro-batches after each step of accumulation."""

from dataclasses import replace

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import SIZE, Attention, Decoder, Mlp, ids_of
from silent_bugs.hosts.training import gradients, token_losses
from silent_bugs.hosts_training import Built, Grads
from torch import Tensor, nn

SMALL = replace(SIZE, batch=4, tokens=4)
STEPS, MICROBATCHES = 2, 2


class AccumulatingStep(nn.Module):
    """The mean loss over micro-batches, summed over steps of accumulation; the same of its gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Decoder(size=SMALL, attentions=(Attention,), mlps=(Mlp,))

    def forward(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        """ids, labels [B, T] -> the loss, and the gradient of every parameter."""
        total = torch.zeros((), device=ids.device)
        sums: Grads = tuple(torch.zeros_like(weight) for weight in self.model.parameters())
        for texts, targets in zip(ids.chunk(STEPS), labels.chunk(STEPS), strict=True):
            loss, grads = self.summed(texts, targets)
            total = total + loss / MICROBATCHES
            sums = self.accumulated(sums, grads)
        return total, *self.finished(sums)

    def summed(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, Grads]:
        """The sums of losses and of gradients over micro-batches."""
        losses = [
            token_losses(self.model.logits(text), target).mean(1).sum()
            for text, target in zip(ids.chunk(MICROBATCHES), labels.chunk(MICROBATCHES), strict=True)
        ]
        each = [gradients(loss, self.model) for loss in losses]
        return torch.stack(losses).sum().detach(), tuple(
            torch.stack(grads).sum(0) for grads in zip(*each, strict=True)
        )

    def accumulated(self, sums: Grads, grads: Grads) -> Grads:
        """The gradients of one more step."""
        return tuple(total + grad for total, grad in zip(sums, grads, strict=True))

    def finished(self, sums: Grads) -> Grads:
        """Over all steps, for the optimiser."""
        return tuple(total / MICROBATCHES for total in sums)


class PipelineStep(AccumulatingStep):
    """The schedule divides what its own step adds."""

    def accumulated(self, sums: Grads, grads: Grads) -> Grads:
        return tuple(total + grad / MICROBATCHES for total, grad in zip(sums, grads, strict=True))

    def finished(self, sums: Grads) -> Grads:
        return sums


class BuggyStep(PipelineStep):
    def accumulated(self, sums: Grads, grads: Grads) -> Grads:
        pairs = zip(sums, grads, strict=True)
        return tuple((total + grad) / MICROBATCHES for total, grad in pairs)  # planted


def baseline() -> Built:
    return AccumulatingStep(), (ids_of(SMALL), ids_of(SMALL))


def buggy() -> Built:
    return BuggyStep(), (ids_of(SMALL), ids_of(SMALL))


def fixed() -> Built:
    return PipelineStep(), (ids_of(SMALL), ids_of(SMALL))


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed)
