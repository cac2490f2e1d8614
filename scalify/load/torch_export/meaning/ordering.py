"""Sorting and choosing the largest."""

from collections.abc import Sequence
from types import MappingProxyType

from scalify.ir.graph import Attr
from scalify.load.torch_export.emit import Wire
from scalify.load.torch_export.operation import Meanings, Operation


def _sort(op: Operation) -> Sequence[Wire]:
    wire = op.tensor("self")
    attrs = _order(op, wire)
    return op.emit.emit("sort", wire, attrs=attrs), op.emit.emit("argsort", wire, attrs=attrs)


def _argsort(op: Operation) -> Wire:
    wire = op.tensor("self")
    return op.emit.emit("argsort", wire, attrs=_order(op, wire))


def _order(op: Operation, wire: Wire) -> dict[str, Attr]:
    axis = op.axis(op.integer("dim", -1), len(wire.shape))
    return {"axis": axis, "descending": op.flag("descending", False)}


def _topk(op: Operation) -> Sequence[Wire]:
    wire = op.tensor("self")
    axis = op.axis(op.integer("dim", -1), len(wire.shape))
    attrs: dict[str, Attr] = {"k": op.integer("k"), "axis": axis, "largest": op.flag("largest", True)}
    return op.emit.emit("topk_values", wire, attrs=attrs), op.emit.emit("topk_indices", wire, attrs=attrs)


ORDERING: Meanings = MappingProxyType({
    "aten.sort": _sort,
    "aten.argsort": _argsort,
    "aten.topk": _topk,
})  # fmt: skip
