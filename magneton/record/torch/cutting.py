"""Composites of PyTorch, cut into the operators that they run where nobody watches.

Where gradients are not tracked a composite (``linear``, ``matmul``) reaches a dispatch mode whole. Its parts
are run instead, so that they are seen. Some composites ask whether an operand tracks gradients: ``matmul``
makes one product with the transpose of a parameter that does, and many of another. In inference mode a view
made beneath a dispatch mode forgets what it knew of its base, so it is told again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from magneton.record.torch.calls import signature_of, tensors_in
from magneton.record.torch.internals import call_parts
from magneton.record.torch.storage import shows_same_memory


class Cutting:
    """Of one dispatch mode."""

    def __init__(self) -> None:
        self._depth = 0  # composites that are running

    def parts(
        self, mode: TorchDispatchMode, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Run a composite as its parts, which ``mode`` sees."""
        self._depth += 1
        try:
            with mode:
                return call_parts(func, args, kwargs)
        finally:
            self._depth -= 1

    def part(self, func: Any, args: Sequence[Any], result: Any) -> Any:
        """What a part has returned, as the composite around it is to find it."""
        if self._depth and torch.is_inference_mode_enabled() and _shows(func):
            bases = [base for base in tensors_in(args) if base.requires_grad]
            for view in tensors_in(result):
                if _is_view_of(view, bases):
                    view.requires_grad_()
        return result


def _shows(func: Any) -> bool:
    return bool(getattr(func, "is_view", False)) and not signature_of(func).decomposes


def _is_view_of(view: Tensor, bases: Sequence[Tensor]) -> bool:
    differentiable = view.is_floating_point() and not view.requires_grad and not view.is_inference()
    return differentiable and any(shows_same_memory(view, base) for base in bases)
