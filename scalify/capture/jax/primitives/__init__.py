"""What JAX's primitives become, family by family; and what becomes of the others."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import cast

import jax
import numpy as np

from scalify.capture.jax.primitives import (
    collectives,
    contraction,
    control,
    elementwise,
    indexing,
    movement,
    reduction,
)
from scalify.capture.jax.reader import Call, Handler, jaxprs_in

__all__ = ["HANDLERS", "unknown"]

HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        **elementwise.HANDLERS,
        **movement.HANDLERS,
        **contraction.HANDLERS,
        **reduction.HANDLERS,
        **indexing.HANDLERS,
        **collectives.HANDLERS,
        **control.HANDLERS,
    }
)

_ADDRESS = re.compile(r"\bat 0x[0-9a-f]+|<lambda>")
_PRINTED_WHILE_RUNNING = frozenset({"debug_callback", "debug_print"})


def unknown(call: Call) -> Sequence[int]:
    """A pure function without a meaning, told from others by its parameters; one result after the other."""
    if call.primitive in _PRINTED_WHILE_RUNNING:
        return ()
    if collectives.axes_named(call):
        raise call.refused(
            "scalify does not know this collective", "write it with psum, all_gather, all_to_all or ppermute"
        )
    if call.equation.effects:
        raise call.refused("it has an effect beyond its result", "take it out of what is captured")
    config = tuple((name, _said(value)) for name, value in sorted(call.params.items()))
    calls_python = "callback" in call.primitive or any(_ADDRESS.search(text) for _, text in config)
    if calls_python or any(True for _ in jaxprs_in(call.params)):
        raise call.refused(
            "it calls Python, or a program of its own, which has no meaning here",
            "take it out of what is captured, or pass its result in",
        )
    return [
        call.add(f"jax.{call.primitive}", call.operands, shape, extras=(*config, ("result", str(place))))
        for place, shape in enumerate(call.shapes)
    ]


def _said(value: object) -> str:
    """A parameter as text: equal text, equal parameter. NumPy prints only parts of large arrays."""
    if isinstance(value, np.ndarray | jax.Array):
        array = np.asarray(value)
        return f"{array.dtype}{list(array.shape)} {hashlib.sha256(array.tobytes()).hexdigest()}"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_said, cast('list[object]', value)))})"
    return str(value)
