"""Gradients as results of a program.

Of a loss, the first result that is one number and depends on what wants gradients; where there is none, of
every result that does, weighted by an input of its shape named ``grad.RESULT``. The gradient of a parameter
or input is called ``grad.NAME``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from scalify.errors import CaptureFailed

Named = tuple[str, object]


class Wanting(Protocol):
    """What the program takes."""

    @property
    def label(self) -> str: ...
    @property
    def wants_gradient(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Cotangent:
    """An input that weights a result. ``like`` has its type."""

    result: str
    like: Tensor

    @property
    def label(self) -> str:
        """What the input is called."""
        return f"grad.{self.result}"


def cotangents(results: Sequence[Named]) -> tuple[Cotangent, ...]:
    """The inputs that are needed for gradients of these results: none where there is a loss."""
    learnt = _learnt(results)
    if any(value.ndim == 0 for _, value in learnt):
        return ()
    return tuple(
        Cotangent(result=name, like=torch.empty(value.shape, dtype=value.dtype, device=value.device))
        for name, value in learnt
    )


def gradients(
    given: Sequence[Wanting], leaves: Sequence[Tensor], results: Sequence[Named], weights: Sequence[Tensor]
) -> list[Named]:
    """A gradient for everything that wants one; zeros for what has no part in the results."""
    learnt = _learnt(results)
    loss = next((value for _, value in learnt if value.ndim == 0), None)
    wanting = [(one.label, leaf) for one, leaf in zip(given, leaves, strict=False) if one.wants_gradient]
    made = torch.autograd.grad(
        [value for _, value in learnt] if loss is None else [loss],
        [leaf for _, leaf in wanting],
        list(weights) if loss is None else None,
        allow_unused=True,
        materialize_grads=True,
    )
    return [(f"grad.{label}", gradient) for (label, _), gradient in zip(wanting, made, strict=True)]


def _learnt(results: Sequence[Named]) -> list[tuple[str, Tensor]]:
    """Results that depend on what wants gradients, as this rank has them."""
    found = [
        (name, value.to_local() if isinstance(value, DTensor) else value)
        for name, value in results
        if isinstance(value, Tensor) and value.requires_grad
    ]
    if not found:
        raise CaptureFailed(
            "no result depends on a parameter or input that requires a gradient",
            hint="build it with requires_grad, and without torch.no_grad",
        )
    return found
