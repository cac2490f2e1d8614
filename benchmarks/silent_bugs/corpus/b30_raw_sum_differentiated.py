"""B30: pipeline stages differentiate the raw sum of losses; only the number that is reported is a mean."""

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import SIZE, Decoder, angles, ids_of
from silent_bugs.hosts.training import gradients, token_losses
from silent_bugs.hosts_training import Built, Stage
from torch import Tensor, nn


class WholeStep(nn.Module):
    """The mean loss over all tokens, text by text, and its gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Decoder()

    def forward(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        """ids, labels [B, T] -> the loss, and the gradient of every parameter."""
        total = torch.zeros((), device=ids.device)
        sums = tuple(torch.zeros_like(weight) for weight in self.model.parameters())
        for text, target in zip(ids.split(1), labels.split(1), strict=True):
            loss = token_losses(self.model.logits(text), target).sum() / labels.numel()
            grads = gradients(loss, self.model)
            sums = tuple(one + grad for one, grad in zip(sums, grads, strict=True))
            total = total + loss.detach()
        return total, *sums


class PipelineStep(WholeStep):
    """Two stages, text by text: every stage gets the gradient of what it handed on."""

    def forward(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        """ids, labels [B, T] -> the loss, and the gradient of every parameter."""
        stages = Stage(self.model, (0,)), Stage(self.model, (1,))
        cos, sin = angles(torch.arange(ids.shape[1], device=ids.device), SIZE.head_dim)
        weights = list(self.model.parameters())
        sums = {id(weight): torch.zeros_like(weight) for weight in weights}
        total = torch.zeros((), device=ids.device)
        for text, target in zip(ids.split(1), labels.split(1), strict=True):
            sent = stages[0](text, cos, sin)
            received = sent.detach().requires_grad_()
            losses = token_losses(stages[1](received, cos, sin), target)
            loss = self.to_differentiate(losses, labels.numel())
            of_last = torch.autograd.grad(loss, [received, *stages[1].parameters()])
            of_first = torch.autograd.grad(sent, list(stages[0].parameters()), of_last[0])
            for stage, grads in zip(stages, (of_first, of_last[1:]), strict=True):
                for weight, grad in zip(stage.parameters(), grads, strict=True):
                    sums[id(weight)] = sums[id(weight)] + grad
            total = total + losses.detach().sum()
        return total / labels.numel(), *(sums[id(weight)] for weight in weights)

    def to_differentiate(self, losses: Tensor, tokens: int) -> Tensor:
        """The share of a text in the mean over all tokens."""
        return losses.sum() / tokens


class BuggyStep(PipelineStep):
    def to_differentiate(self, losses: Tensor, tokens: int) -> Tensor:
        return losses.sum()  # planted


def baseline() -> Built:
    return WholeStep(), (ids_of(), ids_of())


def buggy() -> Built:
    return BuggyStep(), (ids_of(), ids_of())


def fixed() -> Built:
    return PipelineStep(), (ids_of(), ids_of())


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed)
