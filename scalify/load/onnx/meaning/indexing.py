"""Reading and writing at places that data says.

ONNX counts negative indices from the end; the IR's are never negative. Where an index may be negative it is
brought into range first, but for the look-up of an input's values in a table of weights: there they are
taken not to be, as frameworks demand of an embedding, and the verdict says so.
"""

from collections.abc import Sequence
from math import prod
from types import MappingProxyType

import numpy as np

from scalify.ir.graph import Attr
from scalify.load.onnx.meaning.elementwise import applied, number
from scalify.load.onnx.model import damaged
from scalify.load.onnx.operation import Meanings, Operation, Unmodelled
from scalify.load.torch_export.emit import Wire


def _wrapped(op: Operation, index: Wire, size: int) -> Wire:
    if op.emit.non_negative(index):
        return index
    known = op.emit.known(index)
    if known is not None:
        return op.emit.array(np.where(known < 0, known + size, known), index.type)
    negative = applied(op, "lt", index, number(op, index, 0), dtype="bool")
    moved = applied(op, "add", index, number(op, index, size))
    return applied(op, "where", negative, moved, index, dtype=index.dtype)


def _is_look_up(op: Operation, table: Wire, index: Wire, axis: int) -> bool:
    """Whether it reads rows of a weight, at places that an input says."""
    nodes = op.emit.nodes
    source = nodes[index.id]
    while source.op in ("reshape", "cast") and source.operands:
        source = nodes[source.operands[0]]
    weight = nodes[table.id]
    return axis == 0 and source.op == "input" and weight.op == "input" and weight.attrs["role"] == "parameter"


def _gather(op: Operation) -> Wire:
    wire, index = op.tensor(0), op.tensor(1)
    axis = op.axis(op.integer("axis", 0), len(wire.shape))
    if _is_look_up(op, wire, index, axis):
        op.note("indices that look up rows of a weight (Gather of ONNX) are not negative")
    else:
        index = _wrapped(op, index, wire.shape[axis])
    return op.emit.emit("take", wire, index, attrs={"axis": axis})


def _gather_elements(op: Operation) -> Wire:
    wire, index = op.tensor(0), op.tensor(1)
    axis = op.axis(op.integer("axis", 0), len(wire.shape))
    if len(index.shape) != len(wire.shape):
        raise damaged(f"{op.what} reads {list(wire.shape)} by {list(index.shape)}")
    for dim, size in enumerate(index.shape):
        if dim != axis:
            wire = op.emit.slice(wire, dim, 0, size)
    return op.emit.emit("take_along", wire, _wrapped(op, index, wire.shape[axis]), attrs={"axis": axis})


def _places(op: Operation, index: Wire, shape: Sequence[int]) -> list[Wire]:
    """Indices of the leading dimensions, from the last dimension of one tensor."""
    count = index.shape[-1] if index.shape else 0
    if not 0 < count <= len(shape):
        raise damaged(f"{op.what} addresses {count} of {len(shape)} dimensions")
    last = len(index.shape) - 1
    parts = [op.emit.slice(index, last, place, place + 1) for place in range(count)]
    flat = [op.emit.reshape(part, index.shape[:-1]) for part in parts]
    return [_wrapped(op, part, size) for part, size in zip(flat, shape, strict=False)]


def _gather_nd(op: Operation) -> Wire:
    wire, index = op.tensor(0), op.tensor(1)
    if op.integer("batch_dims", 0):
        raise Unmodelled("a gather in every batch")
    places = _places(op, index, wire.shape)
    merged = op.emit.reshape(wire, (prod(wire.shape[: len(places)]), *wire.shape[len(places) :]))
    combined = places[0]
    for place, size in zip(places[1:], wire.shape[1:], strict=False):
        scaled = applied(op, "mul", combined, number(op, combined, size))
        combined = applied(op, "add", scaled, place)
    return op.emit.emit("take", merged, combined, attrs={"axis": 0})


def _mode(op: Operation) -> str:
    """Of several writes to one place ``none`` leaves open which stays: they are taken in order."""
    reduction = op.text("reduction", "none")
    if reduction not in ("none", "add"):
        raise Unmodelled(f"a scatter that combines by {reduction}")
    return "add" if reduction == "add" else "set"


def _scatter_elements(op: Operation) -> Wire:
    wire, index, source = op.tensor(0), op.tensor(1), op.tensor(2)
    axis = op.axis(op.integer("axis", 0), len(wire.shape))
    attrs: dict[str, Attr] = {"axis": axis, "mode": _mode(op)}
    return op.emit.emit("scatter", wire, _wrapped(op, index, wire.shape[axis]), source, attrs=attrs)


def _scatter_nd(op: Operation) -> Wire:
    wire, index, source = op.tensor(0), op.tensor(1), op.tensor(2)
    places = _places(op, index, wire.shape)
    return op.emit.emit("index_put", wire, source, *places, attrs={"mode": _mode(op)})


def _one_hot(op: Operation) -> Wire:
    """values[1] at the index, values[0] elsewhere; an index that is out of range gives values[0] alone."""
    index, values = op.tensor(0), op.tensor(2)
    depth = int(op.known(1).reshape(()))
    axis = op.axis(op.integer("axis", -1), len(index.shape) + 1)
    whole = index if index.dtype in ("i64", "i32") else op.emit.cast(index, "i64")
    hot = op.emit.elementwise("one_hot", _wrapped(op, whole, depth), dtype="i64", attrs={"classes": depth})
    order = [*range(axis), len(index.shape), *range(axis, len(index.shape))]
    chosen = op.emit.cast(op.emit.transpose(hot, order), "bool")
    off, on = (op.emit.reshape(op.emit.slice(values, 0, place, place + 1), ()) for place in (0, 1))
    return applied(op, "where", chosen, on, off, dtype=values.dtype)


INDEXING: Meanings = MappingProxyType({
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "OneHot": _one_hot,
})  # fmt: skip
