"""Operators that only move elements: views, slices, permutations, repetitions."""

from collections.abc import Sequence
from itertools import pairwise
from types import MappingProxyType

from scalify.load.torch_export.emit import CONCAT_LIMIT, Wire
from scalify.load.torch_export.fields import damaged
from scalify.load.torch_export.meaning.arithmetic import operand
from scalify.load.torch_export.operation import Meanings, Operation, Unmodelled


def _reshape(op: Operation) -> Wire:
    wire = op.tensor("self")
    return op.emit.reshape(wire, op.result.shape)


def _view(op: Operation) -> Wire:
    if op.overload == "dtype":
        raise Unmodelled("bits seen as another type")
    return _reshape(op)


def _expand(op: Operation) -> Wire:
    return op.emit.broadcast(op.tensor("self"), op.result.shape)


def _permute(op: Operation) -> Wire:
    wire = op.tensor("self")
    return op.emit.transpose(wire, [op.axis(dim, len(wire.shape)) for dim in op.integers("dims")])


def _transpose(op: Operation) -> Wire:
    first = op.integer("dim0", op.integer("axis0", 0))
    second = op.integer("dim1", op.integer("axis1", 0))
    return swapped(op, op.tensor("self"), first, second)


def swapped(op: Operation, wire: Wire, first: int, second: int) -> Wire:
    """Two dimensions change places."""
    rank = len(wire.shape)
    perm = list(range(rank))
    if rank:
        one, other = op.axis(first, rank), op.axis(second, rank)
        perm[one], perm[other] = perm[other], perm[one]
    return op.emit.transpose(wire, perm)


def _t(op: Operation) -> Wire:
    wire = op.tensor("self")
    return wire if len(wire.shape) < 2 else swapped(op, wire, 0, 1)


def _reversed(op: Operation) -> Wire:
    wire = op.tensor("self")
    return op.emit.transpose(wire, tuple(reversed(range(len(wire.shape)))))


def _movedim(op: Operation) -> Wire:
    wire = op.tensor("self")
    rank = len(wire.shape)
    source = [op.axis(dim, rank) for dim in op.integers("source")]
    target = [op.axis(dim, rank) for dim in op.integers("destination")]
    if len(source) != len(target):
        raise damaged(f"{op.call.name} moves {len(source)} dimensions to {len(target)} places")
    moved = dict(zip(target, source, strict=True))
    rest = iter(dim for dim in range(rank) if dim not in source)
    return op.emit.transpose(wire, [moved[place] if place in moved else next(rest) for place in range(rank)])


def _slice(op: Operation) -> Wire:
    wire = op.tensor("self")
    axis = op.axis(op.integer("dim", 0), len(wire.shape))
    size = wire.shape[axis]
    step = op.integer("step", 1)
    start, limit, _ = slice(_given(op, "start"), _given(op, "end"), step).indices(size)
    return op.emit.slice(wire, axis, start, max(start, limit), step)


def _given(op: Operation, name: str) -> int | None:
    return op.integer(name) if op.has(name) else None


def _narrow(op: Operation) -> Wire:
    wire = op.tensor("self")
    axis = op.axis(op.integer("dim"), len(wire.shape))
    start = op.integer("start") if not op.is_tensor("start") else -1
    if start < 0:
        start += wire.shape[axis]
    return op.emit.slice(wire, axis, start, start + op.integer("length"))


def _select(op: Operation) -> Wire:
    wire = op.tensor("self")
    axis = op.axis(op.integer("dim"), len(wire.shape))
    return picked(op, wire, axis, op.axis(op.integer("index"), wire.shape[axis]))


def picked(op: Operation, wire: Wire, axis: int, index: int) -> Wire:
    """One place of one dimension, which goes away."""
    part = op.emit.slice(wire, axis, index, index + 1)
    return op.emit.reshape(part, wire.shape[:axis] + wire.shape[axis + 1 :])


def cut(op: Operation, wire: Wire, axis: int, sizes: Sequence[int]) -> list[Wire]:
    """Consecutive pieces of one dimension."""
    if len(sizes) > CONCAT_LIMIT or sum(sizes) > wire.shape[axis]:
        raise damaged(f"{op.call.name} cuts {wire.shape[axis]} into {len(sizes)} pieces")
    parts: list[Wire] = []
    start = 0
    for size in sizes:
        parts.append(op.emit.slice(wire, axis, start, start + size))
        start += size
    return parts


def _split(op: Operation) -> Sequence[Wire]:
    wire = op.tensor("self")
    axis = op.axis(op.integer("dim", 0), len(wire.shape))
    if op.has("split_sizes"):
        return cut(op, wire, axis, op.integers("split_sizes"))
    given = op.call.arguments.get("split_size")
    if isinstance(given, tuple):
        return cut(op, wire, axis, op.integers("split_size"))
    return cut(op, wire, axis, _equal(wire.shape[axis], op.integer("split_size")))


def _equal(total: int, size: int) -> list[int]:
    """As many pieces of one size as fit, and the rest."""
    if size < 1:
        return [total]
    return [min(size, total - start) for start in range(0, total, size)] or [0]


def _chunk(op: Operation) -> Sequence[Wire]:
    wire = op.tensor("self")
    axis = op.axis(op.integer("dim", 0), len(wire.shape))
    count = op.integer("chunks")
    if count < 1:
        raise damaged(f"{op.call.name} makes {count} chunks")
    return cut(op, wire, axis, _equal(wire.shape[axis], -(-wire.shape[axis] // count)))


def _tensor_split(op: Operation) -> Sequence[Wire]:
    wire = op.tensor("self")
    axis = op.axis(op.integer("dim", 0), len(wire.shape))
    size = wire.shape[axis]
    if op.has("sections"):
        count = op.integer("sections")
        if not 0 < count <= CONCAT_LIMIT:
            raise damaged(f"{op.call.name} makes {count} sections")
        return cut(op, wire, axis, [size // count + (number < size % count) for number in range(count)])
    bounds = [
        0,
        *(min(bound % (size + 1) if bound < 0 else bound, size) for bound in op.integers("indices")),
        size,
    ]
    return cut(op, wire, axis, [max(0, end - start) for start, end in pairwise(bounds)])


def _unbind(op: Operation) -> Sequence[Wire]:
    wire = op.tensor("self")
    axis = op.axis(op.integer("dim", 0), len(wire.shape))
    if wire.shape[axis] > CONCAT_LIMIT:
        raise Unmodelled("more pieces than are told apart")
    return [picked(op, wire, axis, index) for index in range(wire.shape[axis])]


def _repeat(op: Operation) -> Wire:
    """The whole, again and again: a new dimension before each repeated one, then merged with it."""
    wire, times = op.tensor("self"), op.integers("repeats", op.integers("dims", ()))
    rank = max(len(times), len(wire.shape))
    times = (1,) * (rank - len(times)) + times
    shape = (1,) * (rank - len(wire.shape)) + wire.shape
    spread = op.emit.reshape(wire, [size for dim in range(rank) for size in (1, shape[dim])])
    spread = op.emit.broadcast(spread, [size for dim in range(rank) for size in (times[dim], shape[dim])])
    return op.emit.reshape(spread, [time * size for time, size in zip(times, shape, strict=True)])


def _repeat_interleave(op: Operation) -> Wire:
    """Each element several times in a row."""
    if op.is_tensor("repeats"):
        raise Unmodelled("repeats that depend on data")
    wire, times = op.tensor("self"), op.integer("repeats")
    if not op.has("dim"):
        wire = op.emit.flat(wire)
    axis = op.axis(op.integer("dim", 0), len(wire.shape))
    before, after = wire.shape[: axis + 1], wire.shape[axis + 1 :]
    spread = op.emit.broadcast(op.emit.reshape(wire, (*before, 1, *after)), (*before, times, *after))
    return op.emit.reshape(spread, (*before[:-1], before[-1] * times, *after))


def _flip(op: Operation) -> Wire:
    wire = op.tensor("self")
    axes = tuple(sorted({op.axis(dim, len(wire.shape)) for dim in op.integers("dims")}))
    return op.emit.emit("reverse", wire, attrs={"axes": axes}) if axes else wire


def _roll(op: Operation) -> Wire:
    wire = op.tensor("self")
    shifts, dims = op.integers("shifts"), op.integers("dims", ())
    flat = wire if dims else op.emit.flat(wire)
    if len(shifts) != len(dims or (0,)):
        raise damaged(f"{op.call.name} rolls {len(dims)} dimensions by {len(shifts)} shifts")
    for shift, dim in zip(shifts, dims or (0,), strict=True):
        axis = op.axis(dim, len(flat.shape))
        size = flat.shape[axis]
        at = size - shift % size if size else 0
        if 0 < at < size:
            flat = op.emit.concat(
                [op.emit.slice(flat, axis, at, size), op.emit.slice(flat, axis, 0, at)], axis
            )
    return op.emit.reshape(flat, wire.shape)


def _pad(op: Operation) -> Wire:
    """Pairs from the last dimension forward. Negative ones would crop: not modelled."""
    if op.text("mode", "constant") != "constant":
        raise Unmodelled("padding with other than a constant")
    wire, given = op.tensor("self"), op.integers("pad")
    rank = len(wire.shape)
    if len(given) % 2 or len(given) > 2 * rank or any(width < 0 for width in given):
        raise Unmodelled("padding that crops")
    low, high = [0] * rank, [0] * rank
    for number, (before, after) in enumerate(zip(given[::2], given[1::2], strict=True)):
        low[rank - 1 - number], high[rank - 1 - number] = before, after
    value = operand(op, "value", wire.dtype) if op.has("value") else op.emit.constant(wire.dtype, 0)
    attrs = {"low": tuple(low), "high": tuple(high), "interior": (0,) * rank}
    return op.emit.emit("pad", wire, value, attrs=attrs)


def _diagonal(op: Operation) -> Wire:
    """Every (n+1)th element of the flattened square, as an inner reshape and slice."""
    wire = op.tensor("self")
    rank = len(wire.shape)
    first, second = op.axis(op.integer("dim1", 0), rank), op.axis(op.integer("dim2", 1), rank)
    if op.integer("offset", 0) or wire.shape[first] != wire.shape[second]:
        raise Unmodelled("a diagonal beside the middle one, or of no square")
    rest = [dim for dim in range(rank) if dim not in (first, second)]
    moved = op.emit.transpose(wire, [*rest, first, second])
    size = wire.shape[first]
    lead = moved.shape[:-2]
    line = op.emit.reshape(moved, (*lead, size * size))
    return op.emit.slice(line, len(lead), 0, max(1, size * size) if size else 0, size + 1)


def _unfold(op: Operation) -> Wire:
    """Windows of one dimension, which become a last dimension; here only such as do not overlap."""
    wire = op.tensor("self")
    axis = op.axis(op.integer("dimension"), len(wire.shape))
    size, step = op.integer("size"), op.integer("step")
    count = (wire.shape[axis] - size) // step + 1 if step else 0
    if size != step or count < 1:
        raise Unmodelled("windows that overlap or leave gaps")
    kept = op.emit.slice(wire, axis, 0, count * size)
    split = op.emit.reshape(kept, (*wire.shape[:axis], count, size, *wire.shape[axis + 1 :]))
    order = [dim for dim in range(len(split.shape)) if dim != axis + 1]
    return op.emit.transpose(split, [*order, axis + 1])


_RESHAPES = (
    "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "reshape_as", "_unsafe_view",
    "_reshape_alias", "ravel", "squeeze_copy", "unsqueeze_copy", "view_copy", "atleast_1d", "atleast_2d",
)  # fmt: skip

MOVEMENT: Meanings = MappingProxyType({
    **{f"aten.{name}": _reshape for name in _RESHAPES},
    "aten.view": _view,
    "aten.expand": _expand,
    "aten.expand_as": _expand,
    "aten.expand_copy": _expand,
    "aten.broadcast_to": _expand,
    "aten.permute": _permute,
    "aten.permute_copy": _permute,
    "aten.transpose": _transpose,
    "aten.swapaxes": _transpose,
    "aten.swapdims": _transpose,
    "aten.transpose_copy": _transpose,
    "aten.t": _t,
    "aten.t_copy": _t,
    "aten.numpy_T": _reversed,
    "aten.mT": lambda op: swapped(op, op.tensor("self"), -1, -2),
    "aten.movedim": _movedim,
    "aten.moveaxis": _movedim,
    "aten.slice": _slice,
    "aten.slice_copy": _slice,
    "aten.narrow": _narrow,
    "aten.narrow_copy": _narrow,
    "aten.select": _select,
    "aten.select_copy": _select,
    "aten.split": _split,
    "aten.split_with_sizes": _split,
    "aten.split_copy": _split,
    "aten.split_with_sizes_copy": _split,
    "aten.unsafe_split": _split,
    "aten.unsafe_split_with_sizes": _split,
    "aten.chunk": _chunk,
    "aten.unsafe_chunk": _chunk,
    "aten.tensor_split": _tensor_split,
    "aten.unbind": _unbind,
    "aten.repeat": _repeat,
    "aten.tile": _repeat,
    "aten.repeat_interleave": _repeat_interleave,
    "aten.flip": _flip,
    "aten.roll": _roll,
    "aten.pad": _pad,
    "aten.constant_pad_nd": _pad,
    "aten.tril": lambda op: op.emit.emit("tril", op.tensor("self"), attrs={"k": op.integer("diagonal", 0)}),
    "aten.triu": lambda op: op.emit.emit("triu", op.tensor("self"), attrs={"k": op.integer("diagonal", 0)}),
    "aten.diagonal": _diagonal,
    "aten.unfold": _unfold,
})  # fmt: skip
