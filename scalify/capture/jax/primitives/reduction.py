"""Reductions, cumulative sums, orders."""

from collections.abc import Mapping, Sequence
from math import inf
from types import MappingProxyType

import numpy as np

from scalify.capture.jax.reader import Call, Handler
from scalify.load.hlo.literals import STORAGE
from scalify.load.hlo.program import Shape

_COMBINED = {
    "reduce_sum": "add", "reduce_prod": "multiply", "reduce_max": "maximum", "reduce_min": "minimum",
    "reduce_and": "and", "reduce_or": "or",
}  # fmt: skip
_FLOATS = frozenset({"f16", "bf16", "f32", "f64", "f8e5m2", "f8e4m3fn"})


def _reduce(call: Call) -> Sequence[int]:
    opcode, element = _COMBINED[call.primitive], call.shape_at(0).element
    init = call.constant(_neutral(opcode, element), Shape(element))
    return (
        call.add(
            "reduce",
            (call.operands[0], init),
            dimensions=call.integers("axes"),
            called=(call.listing.combiner(opcode, element),),
        ),
    )


def _neutral(opcode: str, element: str) -> float:
    if opcode in ("add", "or"):
        return 0
    if opcode in ("multiply", "and"):
        return 1
    if element == "pred":
        return int(opcode == "minimum")
    if element in _FLOATS:
        return -inf if opcode == "maximum" else inf
    limits = np.iinfo(STORAGE[element])
    return int(limits.min) if opcode == "maximum" else int(limits.max)


def _cumulative(call: Call) -> Sequence[int]:
    direction = "reverse" if call.params["reverse"] else ""
    axis = int(call.params["axis"])
    return (call.add(call.primitive, call.operands, dimensions=(axis,), direction=direction),)


def _arg(call: Call) -> Sequence[int]:
    return (call.add(call.primitive, call.operands, dimensions=(int(call.params["axes"][0]),)),)


def _sort(call: Call) -> Sequence[int]:
    """Keys alone, or keys with what goes along; several keys have no name here."""
    listing = call.listing
    elements = [listing.shape(operand).element for operand in call.operands]
    keys = int(call.params["num_keys"])
    shapes = call.shapes
    direction = "LT" if keys == 1 else f"of {keys} keys"
    whole = call.add(
        "sort",
        call.operands,
        shapes[0] if len(shapes) == 1 else Shape("tuple", parts=shapes),
        dimensions=(int(call.params["dimension"]),),
        stable=bool(call.params["is_stable"]),
        called=(listing.comparator(direction, elements),),
    )
    return (whole,) if len(shapes) == 1 else listing.parts(whole, call.metadata)


def _top_k(call: Call) -> Sequence[int]:
    (operand,), k = call.operands, int(call.params["k"])
    rank = len(call.shape_at(0).dims)
    axis = int(call.params.get("axis", rank - 1)) % rank
    to_last = (*(dim for dim in range(rank) if dim != axis), axis)
    back = tuple(to_last.index(dim) for dim in range(rank))
    parts = tuple(Shape(shape.element, tuple(shape.dims[dim] for dim in to_last)) for shape in call.shapes)
    moved = call.transposed(operand, to_last)
    whole = call.add("topk", (moved,), Shape("tuple", parts=parts), k=k, largest=True)
    return [call.transposed(part, back) for part in call.listing.parts(whole, call.metadata)]


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        **dict.fromkeys(_COMBINED, _reduce),
        "cumsum": _cumulative,
        "cumprod": _cumulative,
        "argmax": _arg,
        "argmin": _arg,
        "sort": _sort,
        "top_k": _top_k,
    }
)
