"""Operators that only move elements. What they are told by inputs has to be known at load."""

from collections.abc import Sequence
from math import prod
from types import MappingProxyType

import numpy as np

from scalify.ir.graph import Attr, TensorType
from scalify.load.onnx.meaning.elementwise import number
from scalify.load.onnx.model import damaged
from scalify.load.onnx.operation import Meaning, Meanings, Operation, Unmodelled
from scalify.load.torch_export.emit import CONCAT_LIMIT, Wire


def _reshape(op: Operation) -> Wire:
    wire, target = op.tensor(), list(op.known_integers(1))
    if not op.integer("allowzero", 0):
        if any(size == 0 and place >= len(wire.shape) for place, size in enumerate(target)):
            raise damaged(f"{op.what} keeps a size that is not there")
        target = [size or wire.shape[place] for place, size in enumerate(target)]
    if target.count(-1) > 1 or min(target, default=0) < -1:
        raise damaged(f"{op.what} reshapes to {target}")
    if -1 in target:
        rest = prod(size for size in target if size != -1)
        if not rest or prod(wire.shape) % rest:
            raise damaged(f"{op.what} reshapes {list(wire.shape)} to {target}")
        target[target.index(-1)] = prod(wire.shape) // rest
    return op.emit.reshape(wire, target)


def _flatten(op: Operation) -> Wire:
    wire = op.tensor()
    rank = len(wire.shape)
    given = op.integer("axis", 1)
    axis = rank if given == rank else op.axis(given, rank)
    return op.emit.reshape(wire, (prod(wire.shape[:axis]), prod(wire.shape[axis:])))


def _axes(op: Operation, rank: int) -> tuple[int, ...] | None:
    """Dimensions from an input; None where it is left out."""
    return op.axes(op.known_integers(1), rank) if op.has(1) else None


def _squeeze(op: Operation) -> Wire:
    wire = op.tensor()
    axes = _axes(op, len(wire.shape))
    if axes is None:
        axes = tuple(dim for dim, size in enumerate(wire.shape) if size == 1)
    if any(wire.shape[axis] != 1 for axis in axes):
        raise damaged(f"{op.what} squeezes {list(axes)} of {list(wire.shape)}")
    return op.emit.reshape(wire, [size for dim, size in enumerate(wire.shape) if dim not in axes])


def _unsqueeze(op: Operation) -> Wire:
    wire, given = op.tensor(), op.known_integers(1)
    rank = len(wire.shape) + len(given)
    axes = op.axes(given, rank)
    sizes = iter(wire.shape)
    return op.emit.reshape(wire, [1 if dim in axes else next(sizes) for dim in range(rank)])


def _transpose(op: Operation) -> Wire:
    wire = op.tensor()
    return op.emit.transpose(wire, op.integers("perm", tuple(reversed(range(len(wire.shape))))))


def _expand(op: Operation) -> Wire:
    """Sizes of 1 on either side give way."""
    wire, target = op.tensor(), op.known_integers(1)
    rank = max(len(wire.shape), len(target))
    own = (1,) * (rank - len(wire.shape)) + wire.shape
    wanted = (1,) * (rank - len(target)) + target
    if any(size < 0 or (one != size and 1 not in (one, size)) for one, size in zip(own, wanted, strict=True)):
        raise damaged(f"{op.what} expands {list(wire.shape)} to {list(target)}")
    return op.emit.broadcast(wire, [size if one == 1 else one for one, size in zip(own, wanted, strict=True)])


def _concat(op: Operation) -> Wire:
    wires = op.tensors()
    if len(wires) > CONCAT_LIMIT:
        raise damaged(f"{op.what} joins {len(wires)} tensors")
    return op.emit.concat(wires, op.axis(op.integer("axis"), len(wires[0].shape)))


def _split(op: Operation) -> Sequence[Wire]:
    wire, count = op.tensor(), len(op.node.outputs)
    axis = op.axis(op.integer("axis", 0), len(wire.shape))
    if op.has(1):
        sizes = op.known_integers(1)
    else:
        count = op.integer("num_outputs", count)
        part = -(-wire.shape[axis] // max(count, 1))
        if not 0 < count <= CONCAT_LIMIT:
            raise damaged(f"{op.what} splits into {count} parts")
        sizes = (*([part] * (count - 1)), wire.shape[axis] - part * (count - 1))
    if min(sizes, default=-1) < 0 or sum(sizes) != wire.shape[axis] or len(sizes) != len(op.node.outputs):
        raise damaged(f"{op.what} splits {wire.shape[axis]} into {list(sizes)[:20]}")
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    return [op.emit.slice(wire, axis, start, start + size) for start, size in zip(starts, sizes, strict=True)]


def _slice(op: Operation) -> Wire:
    """Bounds as Python has them; a negative step reads backwards."""
    wire, starts, ends = op.tensor(), op.known_integers(1), op.known_integers(2)
    rank = len(wire.shape)
    axes = op.axes(op.known_integers(3), rank) if op.has(3) else tuple(range(len(starts)))
    steps = op.known_integers(4) if op.has(4) else (1,) * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps or len(axes) > rank:
        raise damaged(f"{op.what} has {len(starts)} starts, {len(ends)} ends, {len(axes)} axes")
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        wire = _cut(op, wire, axis, slice(start, end, step))
    return wire


def _cut(op: Operation, wire: Wire, axis: int, bounds: slice) -> Wire:
    size = wire.shape[axis]
    places = range(*bounds.indices(size))
    if bounds.step > 0:
        return op.emit.slice(wire, axis, places.start, max(places.start, places.stop), places.step)
    if bounds.start < -size or not len(places):
        return op.emit.slice(wire, axis, 0, 0)
    rising = op.emit.slice(wire, axis, places[-1], places[0] + 1, -places.step)
    return op.emit.emit("reverse", rising, attrs={"axes": (axis,)})


def _pad(op: Operation) -> Wire:
    wire, widths = op.tensor(), op.known_integers(1)
    rank = len(wire.shape)
    if op.text("mode", "constant") != "constant":
        raise Unmodelled("padding with the tensor's own values")
    axes = op.axes(op.known_integers(3), rank) if op.has(3) else tuple(range(rank))
    if len(widths) != 2 * len(axes):
        raise damaged(f"{op.what} has {len(widths)} widths for {len(axes)} dimensions")
    low, high = [0] * rank, [0] * rank
    for place, axis in enumerate(axes):
        low[axis], high[axis] = widths[place], widths[place + len(axes)]
    fill = op.scalar(2) if op.has(2) else number(op, wire, 0)
    attrs: dict[str, Attr] = {"low": tuple(low), "high": tuple(high), "interior": (0,) * rank}
    return op.emit.emit("pad", wire, fill, attrs=attrs)


def _tile(op: Operation) -> Wire:
    wire, repeats = op.tensor(), op.known_integers(1)
    if len(repeats) != len(wire.shape) or min(repeats, default=1) < 0:
        raise damaged(f"{op.what} repeats {list(repeats)} of {list(wire.shape)}")
    spread = [size for pair in zip(repeats, wire.shape, strict=True) for size in pair]
    beside = op.emit.reshape(wire, [size for own in wire.shape for size in (1, own)])
    made = op.emit.broadcast(beside, spread)
    return op.emit.reshape(made, [one * other for one, other in zip(repeats, wire.shape, strict=True)])


def _trilu(op: Operation) -> Wire:
    offset = int(op.known(1)) if op.has(1) else 0
    name = "triu" if op.integer("upper", 1) else "tril"
    return op.emit.emit(name, op.tensor(), attrs={"k": offset})


def _shape(op: Operation) -> Wire:
    shape = op.tensor().shape
    start = op.integer("start", 0)
    end = op.integer("end") if op.given("end") else len(shape)
    part = shape[slice(start, end)] if start >= -len(shape) else shape[: slice(0, end).indices(len(shape))[1]]
    return op.emit.array(np.array(part, np.int64), TensorType("i64", (len(part),)))


def _size(op: Operation) -> Wire:
    return op.emit.constant("i64", prod(op.tensor().shape))


def _depth_to_space(op: Operation) -> Wire:
    wire, block = op.tensor(), op.integer("blocksize")
    if len(wire.shape) != 4 or block < 1 or wire.shape[1] % (block * block):
        raise damaged(f"{op.what} of {list(wire.shape)} by {block}")
    n, c, h, w = wire.shape
    depth = c // (block * block)
    if op.text("mode", "DCR") == "DCR":
        apart, perm = (n, block, block, depth, h, w), (0, 3, 4, 1, 5, 2)
    else:
        apart, perm = (n, depth, block, block, h, w), (0, 1, 4, 2, 5, 3)
    moved = op.emit.transpose(op.emit.reshape(wire, apart), perm)
    return op.emit.reshape(moved, (n, depth, h * block, w * block))


def _space_to_depth(op: Operation) -> Wire:
    wire, block = op.tensor(), op.integer("blocksize")
    if len(wire.shape) != 4 or block < 1 or wire.shape[2] % block or wire.shape[3] % block:
        raise damaged(f"{op.what} of {list(wire.shape)} by {block}")
    n, c, h, w = wire.shape
    apart = op.emit.reshape(wire, (n, c, h // block, block, w // block, block))
    moved = op.emit.transpose(apart, (0, 3, 5, 1, 2, 4))
    return op.emit.reshape(moved, (n, c * block * block, h // block, w // block))


_MOVES: dict[str, Meaning] = {
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": _transpose,
    "Expand": _expand,
    "Concat": _concat,
    "Split": _split,
    "Slice": _slice,
    "Pad": _pad,
    "Tile": _tile,
    "Trilu": _trilu,
    "Shape": _shape,
    "Size": _size,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
}
MOVEMENT: Meanings = MappingProxyType(_MOVES)
