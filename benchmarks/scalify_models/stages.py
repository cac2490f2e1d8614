"""Two blocks one after the other, on one device and on two ranks that pass on the stream and its gradient."""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from scalify_models.blocks import BATCH, TOKENS, WIDTH, Groups, LlamaBlock, Parts
from torch import Tensor, nn
from torch.distributed import ProcessGroup


class Whole(nn.Module):
    """Both blocks and a loss; the gradients are taken by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = LlamaBlock(Parts()), LlamaBlock(Parts())

    def forward(self, x: Tensor, target: Tensor) -> dict[str, Tensor]:
        loss = _loss(self.second(self.first(x)), target)
        return {"loss": loss.detach(), **_gradients(self, torch.autograd.grad(loss, list(self.parameters())))}


class First(nn.Module):
    """The first block: sends its result, receives the gradient."""

    def __init__(self, group: ProcessGroup) -> None:
        super().__init__()
        self.group = group
        self.first = LlamaBlock(Parts())

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        y = self.first(x)
        dist.send(y.detach(), dst=1, group=self.group)
        grad = torch.empty_like(y)
        dist.recv(grad, src=1, group=self.group)
        return _gradients(self, torch.autograd.grad(y, list(self.parameters()), grad))


class Second(nn.Module):
    """The second block and the loss: receives the stream, sends back its gradient."""

    def __init__(self, group: ProcessGroup) -> None:
        super().__init__()
        self.group = group
        self.second = LlamaBlock(Parts())

    def forward(self, target: Tensor) -> dict[str, Tensor]:
        x = torch.empty_like(target)
        dist.recv(x, src=0, group=self.group)
        x.requires_grad_()
        loss = _loss(self.second(x), target)
        grad, *grads = torch.autograd.grad(loss, [x, *self.parameters()])
        dist.send(grad, dst=0, group=self.group)
        return {"loss": loss.detach(), **_gradients(self, grads)}


def _loss(y: Tensor, target: Tensor) -> Tensor:
    return (y - target).pow(2).mean()


def _gradients(module: nn.Module, grads: Sequence[Tensor]) -> dict[str, Tensor]:
    """Each under its parameter's name: stages hold some of them."""
    names = (name for name, _ in module.named_parameters())
    return {f"grad.{name}": grad for name, grad in zip(names, grads, strict=True)}


def _stream() -> Tensor:
    return torch.empty(BATCH, TOKENS, WIDTH, device="meta")


def stages_alone() -> object:
    """On one device."""
    return Whole().to("meta"), (_stream(), _stream())


def stages_in_parts(rank: int, groups: Groups) -> object:
    """Rank 0 has the first block, rank 1 the second."""
    stage = (First, Second)[rank](groups["pp"]).to("meta")
    return stage, (_stream(),)
