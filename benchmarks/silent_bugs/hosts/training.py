"""Training steps: a loss, its gradients, and what ranks do with these before an optimiser takes them."""

# Autograd functions are called with what they like: PyTorch types none of it.
# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import Function


def token_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """The loss [B, T] of every label, from logits [B, T, V]."""
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view_as(labels)


def gradients(loss: Tensor, module: nn.Module) -> tuple[Tensor, ...]:
    """Of a loss, for every parameter."""
    return torch.autograd.grad(loss, list(module.parameters()))


class Attached(Function):
    """A second loss, differentiated where the first one's gradient passes: what passes stays as it is."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, loss: Tensor, scale: float) -> Tensor:
        """x, whatever the loss."""
        ctx.scale = scale
        ctx.save_for_backward(loss)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """The gradient of the first loss, and that of the second, which is a number."""
        (loss,) = ctx.saved_tensors
        return grad, torch.ones_like(loss) * ctx.scale, None


def adam(weight: Tensor, grad: Tensor, mean: Tensor, square: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One step: what weights and both averages become."""
    mean = 0.9 * mean + 0.1 * grad
    square = 0.95 * square + 0.05 * grad * grad
    step = (mean / 0.1) / ((square / 0.05).sqrt() + 1e-6)
    return weight - 0.01 * (step + 0.1 * weight), mean, square


def flat(tensors: Sequence[Tensor]) -> Tensor:
    """All elements in one row."""
    return torch.cat([tensor.reshape(-1) for tensor in tensors])
