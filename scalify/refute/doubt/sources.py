"""Where an op has no value that frameworks agree on, or none that double precision can hold.

Infinity or nothing made of finite numbers; whole numbers that do not fit their type; a division of whole
numbers by zero, a shift by more than there are bits; the side of zero on which an angle or a complex root
turns over; products too small for double precision; rows that are written twice.
"""

from collections.abc import Sequence
from math import prod
from typing import cast

import numpy as np

from scalify.ir.graph import DType, Node
from scalify.ir.ops.dtypes import INTEGER_BITS, KIND_OF
from scalify.ir.ops.elementwise import ELEMENTWISE
from scalify.ir.ops.spec import Array

POINTWISE = frozenset(op.name for op in ELEMENTWISE)
SMALLEST = 2.0**-1000
LARGEST = 2.0**62
POWERS = frozenset({"exp", "exp2", "sigmoid", "softmax", "softplus", "silu", "gelu"})
_TURNING = frozenset({"log", "log2", "sqrt", "rsqrt", "pow"})
_FITTING = frozenset({
    "add", "sub", "mul", "neg", "abs", "square", "pow", "einsum", "reduce", "cumsum", "cumprod", "all_reduce",
    "reduce_scatter", "index_put", "scatter",
})  # fmt: skip
_SHADOWS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "pow": np.power, "square": np.square}


def own(node: Node, dtypes: Sequence[DType], operands: Sequence[Array], result: Array) -> Array | None:
    """The elements of a result that say nothing, for what the node itself does; None where all do.

    Those that have no value are not among them: ``valueless``.
    """
    kind = KIND_OF[node.type.dtype]
    found: list[Array | None] = []
    if kind in ("float", "complex"):
        found = [_tiny(node, operands, result), _turned(node, operands)]
    if kind == "int":
        found = [_unfitting(node, dtypes, operands, result), _undefined(node, dtypes, operands)]
    if node.op in ("scatter", "index_put") and node.attrs.get("mode") == "set":
        found.append(_twice(node, operands))
    marks = [each for each in found if each is not None and each.any()]
    return np.broadcast_to(np.logical_or.reduce(marks), result.shape) if marks else None


def valueless(node: Node, operands: Sequence[Array], result: Array) -> Array | None:
    """The elements for which real numbers became none, or infinite."""
    if result.dtype.kind not in "fc" or np.isfinite(result).all():
        return None
    nothing, unbounded = np.isnan(result), np.isinf(result)
    if node.op in ("input", "constant") or not unbounded.any():
        return nothing
    if node.op in POINTWISE:
        for each in operands:
            unbounded = unbounded & np.isfinite(each)
        return nothing | unbounded
    return nothing if any(not np.isfinite(each).all() for each in operands) else nothing | unbounded


def vanished(node: Node, operands: Sequence[Array], result: Array) -> Array | None:
    """Powers too small for double precision."""
    if node.op not in POWERS or result.dtype.kind != "f":
        return None
    return (np.abs(result) < SMALLEST) & np.isfinite(operands[0])


def _tiny(node: Node, operands: Sequence[Array], result: Array) -> Array | None:
    if node.op not in ("mul", "square", "div", "pow") or result.dtype.kind != "f":
        return None
    small = np.abs(result) < SMALLEST
    if not small.any():
        return None
    for each in operands if node.op == "mul" else operands[:1]:
        small = small & (each != 0)
    return small & np.isfinite(operands[-1]) if node.op == "div" else small


def _turned(node: Node, operands: Sequence[Array]) -> Array | None:
    if node.op == "atan2":
        y, x = operands
        return (y == 0) & (x <= 0)
    if node.op not in _TURNING or operands[0].dtype.kind != "c":
        return None
    return (np.imag(operands[0]) == 0) & (np.real(operands[0]) <= 0)


def _unfitting(node: Node, dtypes: Sequence[DType], operands: Sequence[Array], result: Array) -> Array | None:
    dtype = node.type.dtype
    if node.op == "cast":
        return _cast(dtype, dtypes[0], operands[0], result)
    if node.op not in _FITTING:
        return None
    beyond = _beyond(dtype, result)
    if node.op in _SHADOWS and result.size and np.abs(result).max() > 1 << 20:
        wide = _SHADOWS[node.op](*(each.astype(np.float64) for each in operands))
        beyond = beyond | ~(np.abs(wide) < LARGEST)
    if node.op == "pow":
        beyond = beyond | (operands[1] < 0)
    return beyond


def _beyond(dtype: DType, value: Array) -> Array:
    bits = INTEGER_BITS[dtype]
    if dtype.startswith("u"):
        return (value < 0) | (value > float(1 << bits) - 1)
    return (value < -float(1 << (bits - 1))) | (value > float(1 << (bits - 1)) - 1)


def _cast(dtype: DType, given: DType, value: Array, result: Array) -> Array | None:
    if KIND_OF[given] in ("float", "complex"):
        whole = np.trunc(np.real(value))
        return ~np.isfinite(value) | (np.abs(whole) >= LARGEST) | _beyond(dtype, whole)
    wide = KIND_OF[given] == "int" and not dtype.startswith("u") and INTEGER_BITS[dtype] >= 32
    return result != value if wide else None


def _undefined(node: Node, dtypes: Sequence[DType], operands: Sequence[Array]) -> Array | None:
    if node.op in ("floordiv", "mod", "rem"):
        return operands[1] == 0
    if node.op in ("shift_left", "shift_right"):
        return (operands[1] < 0) | (operands[1] >= INTEGER_BITS[dtypes[0]])
    return None


def _twice(node: Node, operands: Sequence[Array]) -> Array | None:
    """Rows that are written more than once, whatever is written."""
    x, counts = operands[0], np.zeros(operands[0].shape, dtype=np.int64)
    if node.op == "scatter":
        axis = cast(int, node.attrs["axis"])
        places: list[Array] = list(np.indices(operands[1].shape, sparse=True))
        places[axis] = operands[1]
        np.add.at(counts, tuple(places), 1)
        return counts > 1
    indices = np.broadcast_arrays(*operands[2:])
    rows = x.shape[: len(indices)]
    if not prod(rows):
        return None
    flat = np.bincount(np.ravel_multi_index(tuple(indices), rows).ravel(), minlength=prod(rows))
    return (flat.reshape(rows) > 1).reshape(rows + (1,) * (x.ndim - len(rows)))
