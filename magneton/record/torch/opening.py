"""Operators written in Python: an engine's attention is one, with the operators that do the work inside.

Such an operator is opened, so that these are seen, unless what it makes does not come from them: a kernel
started past the dispatcher. Then it stays closed, one operator like any other.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from magneton.record.torch.calls import signature_of, tensors_in
from magneton.record.torch.internals import OperatorOverload, python_kernel


class Openings:
    """Which operators are opened. Shared by the passes over a system: all of them must cut alike."""

    def __init__(self) -> None:
        self._closed: set[str] = set()

    def inside(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Callable[..., Any] | None:
        """The Python behind ``func``, to be called like it; None where it is to stay closed."""
        if (
            not isinstance(func, OperatorOverload)
            or signature_of(func).is_native
            or func.name() in self._closed
        ):
            return None
        devices = {tensor.device.type for tensor in tensors_in((*args, kwargs))}
        return python_kernel(func, devices.pop().upper() if len(devices) == 1 else "CPU")

    def close(self, func: Any) -> None:
        """From now on ``func`` is one operator."""
        self._closed.add(func.name())
