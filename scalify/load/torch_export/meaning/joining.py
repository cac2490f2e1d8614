"""Tensors put together."""

from collections.abc import Sequence
from types import MappingProxyType

from scalify.load.torch_export.emit import CONCAT_LIMIT, Wire
from scalify.load.torch_export.fields import damaged
from scalify.load.torch_export.operation import Meanings, Operation


def joined(op: Operation, wires: Sequence[Wire], axis: int) -> Wire:
    """Side by side, in the category of the result."""
    if not 0 < len(wires) <= CONCAT_LIMIT:
        raise damaged(f"{op.call.name} joins {len(wires)} tensors")
    return op.emit.concat([op.emit.cast(wire, op.result.dtype) for wire in wires], axis)


def _cat(op: Operation) -> Wire:
    """PyTorch lets an empty vector stand beside anything."""
    wires = op.tensors("tensors")
    rank = len(op.result.shape)
    kept = [wire for wire in wires if wire.shape != (0,) or rank == 1] or list(wires)
    return joined(op, kept, op.axis(op.integer("dim", 0), rank))


def _stack(op: Operation) -> Wire:
    wires = op.tensors("tensors")
    axis = op.axis(op.integer("dim", 0), len(op.result.shape))
    return joined(op, [_with_axis(op, wire, axis) for wire in wires], axis)


def _rows(op: Operation) -> Wire:
    """Vectors are rows of one."""
    wires = [
        op.emit.reshape(wire, (1,) * (2 - len(wire.shape)) + wire.shape) for wire in op.tensors("tensors")
    ]
    return joined(op, wires, 0)


def _columns(op: Operation) -> Wire:
    """Vectors follow each other."""
    wires = [op.emit.reshape(wire, wire.shape or (1,)) for wire in op.tensors("tensors")]
    return joined(op, wires, 0 if len(wires[0].shape) == 1 else 1)


def _broadcast_tensors(op: Operation) -> Sequence[Wire]:
    return [op.emit.broadcast(wire, op.result.shape) for wire in op.tensors("tensors")]


def _with_axis(op: Operation, wire: Wire, axis: int) -> Wire:
    return op.emit.reshape(wire, (*wire.shape[:axis], 1, *wire.shape[axis:]))


def _meshgrid(op: Operation) -> Sequence[Wire]:
    wires = op.tensors("tensors")
    shape = [wire.shape[0] if wire.shape else 1 for wire in wires]
    swap = op.text("indexing", "ij") == "xy" and len(wires) > 1
    order = [1, 0, *range(2, len(wires))] if swap else list(range(len(wires)))
    target = [shape[place] for place in order]
    grids: list[Wire] = []
    for number, wire in enumerate(wires):
        at = order.index(number)
        line = op.emit.reshape(wire, [shape[number] if place == at else 1 for place in range(len(wires))])
        grids.append(op.emit.broadcast(line, target))
    return grids


JOINING: Meanings = MappingProxyType({
    "aten.cat": _cat,
    "aten.concat": _cat,
    "aten.concatenate": _cat,
    "aten.stack": _stack,
    "aten.vstack": _rows,
    "aten.hstack": _columns,
    "aten.broadcast_tensors": _broadcast_tensors,
    "aten.meshgrid": _meshgrid,
})  # fmt: skip
