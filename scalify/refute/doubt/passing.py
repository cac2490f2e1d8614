"""Which elements of a result depend on marked elements of the operands: too many rather than too few."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from scalify.ir.evaluate import PerRank
from scalify.ir.ops import OPS
from scalify.ir.ops.spec import Array, Call
from scalify.refute.doubt.sources import POINTWISE

CLOSE = 2.0**-40
"""Of the largest element: which of two numbers as close as that is taken does not matter."""

_MOVING = frozenset({
    "reshape", "transpose", "broadcast", "slice", "concat", "pad", "reverse", "update_slice", "tril", "triu",
})  # fmt: skip

Marks = Sequence[Array]
Pass = Callable[[Call, Marks, Sequence[Array], Array], Array]
"""From a call, the marks and the values of its operands, and its result."""


def passed(call: Call, marks: Marks, operands: Sequence[Array], result: Array) -> Array:
    """The marks of a result on one rank."""
    rule = _RULES.get(call.op)
    if _is_in_pieces(call, operands):
        rule = _all
    if rule is None:
        rule = _moved if call.op in _MOVING else _pointwise if call.op in POINTWISE else _all
    return np.broadcast_to(rule(call, marks, operands, result), result.shape)


def _is_in_pieces(call: Call, operands: Sequence[Array]) -> bool:
    """Whether a weight is no operand because it is made piece by piece (``scalify.refute.tiles``)."""
    if call.op == "take":
        return len(operands) < OPS["take"].arity[0]
    return call.op == "einsum" and len(operands) <= call.text("spec").count(",")


def passed_on(call: Call, marks: PerRank) -> PerRank:
    """The marks of what a collective gives every rank."""
    across = OPS[call.op].across
    assert across is not None
    if "kind" in call.attrs:
        call = replace(call, attrs={**call.attrs, "kind": "max"})
    return across(call, marks)


def _all(call: Call, marks: Marks, operands: Sequence[Array], result: Array) -> Array:
    del call, operands, result
    return np.asarray(any(each.any() for each in marks))


def _pointwise(call: Call, marks: Marks, operands: Sequence[Array], result: Array) -> Array:
    del call, operands, result
    return np.logical_or.reduce(np.broadcast_arrays(*marks))


def _moved(call: Call, marks: Marks, operands: Sequence[Array], result: Array) -> Array:
    del operands, result
    return _meant(call, marks)


def _meant(call: Call, arrays: Sequence[Array]) -> Array:
    meaning = OPS[call.op].meaning
    assert meaning is not None
    return np.asarray(meaning(call, arrays)) != 0


def _where(call: Call, marks: Marks, operands: Sequence[Array], result: Array) -> Array:
    """A choice in doubt between numbers that are the same but for rounding is none."""
    del call
    condition, one, other = operands
    chosen = np.where(condition, marks[1], marks[2])
    if result.dtype.kind not in "fc" or not result.size:
        return chosen | marks[0]
    with np.errstate(all="ignore"):
        sizes = [np.abs(each[np.isfinite(each)]).max(initial=0.0) for each in (one, other)]
        same = np.abs(one.astype(result.dtype) - other) <= CLOSE * max(sizes)
    return chosen | (marks[0] & ~(same & ~marks[1] & ~marks[2]))


def _and(call: Call, marks: Marks, operands: Sequence[Array], result: Array) -> Array:
    """What is false for sure is false with anything."""
    if result.dtype.kind != "b":
        return _pointwise(call, marks, operands, result)
    one, other = operands
    return (marks[0] & marks[1]) | (marks[0] & other) | (marks[1] & one)


def _or(call: Call, marks: Marks, operands: Sequence[Array], result: Array) -> Array:
    if result.dtype.kind != "b":
        return _pointwise(call, marks, operands, result)
    one, other = operands
    return (marks[0] & marks[1]) | (marks[0] & ~other) | (marks[1] & ~one)


def _reduced(call: Call, marks: Marks, operands: Sequence[Array], result: Array) -> Array:
    del operands, result
    axes = call.integers("axes") if "axes" in call.attrs else (call.integer("axis"),)
    return np.any(marks[0], axis=axes, keepdims=call.flag("keepdims"))


def _rows(call: Call, marks: Marks, operands: Sequence[Array], result: Array) -> Array:
    """Every element of a row depends on all of it."""
    if any(each.any() for each in marks[1:]):
        return _all(call, marks, operands, result)
    axes = call.integers("axes") if "axes" in call.attrs else (call.integer("axis"),)
    return np.any(marks[0], axis=axes, keepdims=True)


def _running(call: Call, marks: Marks, operands: Sequence[Array], result: Array) -> Array:
    del operands, result
    return np.logical_or.accumulate(marks[0], axis=call.integer("axis"))


def _einsum(call: Call, marks: Marks, operands: Sequence[Array], result: Array) -> Array:
    del operands
    left, _, right = call.text("spec").partition("->")
    found = np.zeros(result.shape, dtype=np.bool_)
    for letters, mark in zip(left.split(","), marks, strict=True):
        if not mark.any():
            continue
        kept = mark.any(axis=tuple(dim for dim, letter in enumerate(letters) if letter not in right))
        names = [letter for letter in letters if letter in right]
        order = tuple(names.index(letter) for letter in right if letter in names)
        shape = [size if letter in names else 1 for letter, size in zip(right, result.shape, strict=True)]
        found |= np.transpose(kept, order).reshape(shape)
    return found


def _dynamic(call: Call, marks: Marks, operands: Sequence[Array], result: Array) -> Array:
    data = 2 if call.op == "dynamic_update_slice" else 1
    if any(each.any() for each in marks[data:]):
        return _all(call, marks, operands, result)
    return _meant(call, [*marks[:data], *operands[data:]])


def _take(call: Call, marks: Marks, operands: Sequence[Array], result: Array) -> Array:
    del result
    axis, after = call.integer("axis"), operands[0].ndim - call.integer("axis") - 1
    found = _meant(call, [marks[0], operands[1]])
    return found | marks[1].reshape((1,) * axis + marks[1].shape + (1,) * after)


def _take_along(call: Call, marks: Marks, operands: Sequence[Array], result: Array) -> Array:
    del result
    return _meant(call, [marks[0], operands[1]]) | marks[1]


def _written(call: Call, marks: Marks, operands: Sequence[Array], result: Array) -> Array:
    if call.op == "scatter":
        x, indices, source = marks
        if indices.any():
            return _all(call, marks, operands, result)
        return _meant(call, [x.astype(np.float64), operands[1], source.astype(np.float64)])
    if any(each.any() for each in marks[2:]):
        return _all(call, marks, operands, result)
    return _meant(call, [marks[0].astype(np.float64), marks[1].astype(np.float64), *operands[2:]])


def _one_hot(call: Call, marks: Marks, operands: Sequence[Array], result: Array) -> Array:
    del call, operands, result
    return marks[0][..., None]


_RULES: Mapping[str, Pass] = MappingProxyType({
    "where": _where, "and": _and, "or": _or, "einsum": _einsum, "take": _take, "take_along": _take_along,
    "scatter": _written, "index_put": _written, "one_hot": _one_hot, "dynamic_slice": _dynamic,
    "dynamic_update_slice": _dynamic, "cumsum": _running, "cumprod": _running, "reduce": _reduced,
    "argmax": _reduced, "argmin": _reduced, "logsumexp": _reduced, "softmax": _rows, "log_softmax": _rows,
    "sort": _rows, "argsort": _rows, "topk_values": _rows, "topk_indices": _rows, "layer_norm": _rows,
    "rms_norm": _rows,
})  # fmt: skip
