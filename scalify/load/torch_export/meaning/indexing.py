"""Reading and writing at places that data says.

PyTorch counts negative indices from the end; the IR's are never negative. Where an index may be negative
(it is data), it is brought into range first.
"""

from collections.abc import Sequence
from math import prod
from types import MappingProxyType

from scalify.ir.graph import Attr, NodeId
from scalify.load.torch_export.emit import Emitter, Wire
from scalify.load.torch_export.fields import damaged
from scalify.load.torch_export.meaning.arithmetic import operand
from scalify.load.torch_export.memory import put
from scalify.load.torch_export.operation import Meaning, Meanings, Operation, Unmodelled
from scalify.load.torch_export.scalars import kind

_KEEPS_SIGN = (
    "reshape",
    "broadcast",
    "transpose",
    "slice",
    "concat",
    "cast",
    "add",
    "mul",
    "max",
    "reverse",
    "cumsum",
)
_NEVER_NEGATIVE = ("iota", "argmax", "argmin", "argsort", "topk_indices", "one_hot", "rank", "abs")
_DEEPEST_LOOK = 24


def _non_negative(emit: Emitter, node_id: NodeId, depth: int = 0) -> bool:
    """Whether a value plainly has no negative element."""
    node = emit.nodes[node_id]
    if node.op in _NEVER_NEGATIVE or node.type.dtype in ("bool", "u8", "u16", "u32", "u64"):
        return True
    if node.op == "constant":
        data = node.attrs.get("data")
        return isinstance(data, tuple) and all(isinstance(number, int) and number >= 0 for number in data)
    if node.op not in _KEEPS_SIGN or depth > _DEEPEST_LOOK:
        return False
    return all(_non_negative(emit, operand_id, depth + 1) for operand_id in node.operands)


def wrapped(op: Operation, index: Wire, size: int) -> Wire:
    """Indices with the negative ones counted from the end."""
    if _non_negative(op.emit, index.id):
        return index
    dtype = index.dtype
    negative = op.emit.elementwise("lt", index, op.emit.constant(dtype, 0), dtype="bool")
    moved = op.emit.elementwise("add", index, op.emit.constant(dtype, size), dtype=dtype)
    return op.emit.elementwise("where", negative, moved, index, dtype=dtype)


def _embedding(op: Operation) -> Wire:
    return op.emit.emit("take", op.tensor("weight"), op.tensor("indices"), attrs={"axis": 0})


def _index_select(op: Operation) -> Wire:
    wire = op.tensor("self")
    attrs: dict[str, Attr] = {"axis": op.axis(op.integer("dim"), len(wire.shape))}
    return op.emit.emit("take", wire, op.tensor("index"), attrs=attrs)


def _index(op: Operation) -> Wire:
    """One index is a take; several neighbours are one, of the dimensions merged and the indices combined."""
    wire = op.tensor("self")
    given = op.maybe_tensors("indices")
    places = [place for place, index in enumerate(given) if index is not None]
    indices = [_integers(op, index) for index in given if index is not None]
    if not places or len(given) > len(wire.shape):
        raise damaged(f"{op.call.name} indexes {len(wire.shape)} dimensions with {len(given)} indices")
    if places != list(range(places[0], places[0] + len(places))):
        return _apart(op, wire, places, indices)
    sizes = [wire.shape[place] for place in places]
    merged = (*wire.shape[: places[0]], prod(sizes), *wire.shape[places[-1] + 1 :])
    combined = _combined(op, indices, sizes)
    return op.emit.emit("take", op.emit.reshape(wire, merged), combined, attrs={"axis": places[0]})


def _apart(op: Operation, wire: Wire, places: list[int], indices: list[Wire]) -> Wire:
    """Indices with a gap between them: what they pick comes first in the result."""
    rest = [dim for dim in range(len(wire.shape)) if dim not in places]
    moved = op.emit.transpose(wire, [*places, *rest])
    sizes = [wire.shape[place] for place in places]
    merged = op.emit.reshape(moved, (prod(sizes), *(wire.shape[dim] for dim in rest)))
    return op.emit.emit("take", merged, _combined(op, indices, sizes), attrs={"axis": 0})


def _integers(op: Operation, index: Wire) -> Wire:
    if index.dtype in ("bool", "u8"):
        raise Unmodelled("a mask as index: the result's size depends on data")
    if kind(index.dtype) != "int":
        raise damaged(f"{op.call.name} indexes with {index.dtype}")
    return index


def _combined(op: Operation, indices: Sequence[Wire], sizes: Sequence[int]) -> Wire:
    """The place in the merged dimension, row-major."""
    combined = wrapped(op, indices[0], sizes[0])
    for index, size in zip(indices[1:], sizes[1:], strict=True):
        if size == 1:
            combined = _beside(op, combined, index)
            continue
        scaled = op.emit.elementwise("mul", combined, op.emit.constant("i64", size), dtype="i64")
        combined = op.emit.elementwise("add", scaled, wrapped(op, index, size), dtype="i64")
    return combined


def _beside(op: Operation, combined: Wire, index: Wire) -> Wire:
    """An index into a single place picks that place: only its shape counts."""
    zero = op.emit.elementwise("mul", index, op.emit.constant(index.dtype, 0), dtype="i64")
    return op.emit.elementwise("add", combined, zero, dtype="i64")


def _gather(op: Operation) -> Wire:
    wire, index = op.tensor("self"), op.tensor("index")
    if not wire.shape:
        raise Unmodelled("a gather from a number")
    axis = op.axis(op.integer("dim"), len(wire.shape))
    for dim, size in enumerate(index.shape):
        if dim != axis:
            wire = op.emit.slice(wire, dim, 0, size)
    return op.emit.emit("take_along", wire, index, attrs={"axis": axis})


def _take_along_dim(op: Operation) -> Wire:
    wire, index = op.tensor("self"), op.tensor("indices")
    if not op.has("dim"):
        return op.emit.emit("take", op.emit.flat(wire), op.emit.flat(index), attrs={"axis": 0})
    axis = op.axis(op.integer("dim"), len(wire.shape))
    if any(
        one != other
        for dim, (one, other) in enumerate(zip(wire.shape, index.shape, strict=True))
        if dim != axis
    ):
        raise Unmodelled("a take_along_dim that broadcasts")
    return op.emit.emit("take_along", wire, wrapped(op, index, wire.shape[axis]), attrs={"axis": axis})


def _scatter(mode: str) -> Meaning:
    def meaning(op: Operation) -> Wire:
        wire, index = op.tensor("self"), op.tensor("index")
        if op.has("reduce") and op.text("reduce", "") != "add":
            raise Unmodelled("a scatter that reduces")
        if not wire.shape:
            raise Unmodelled("a scatter into a number")
        source = op.tensor("src") if op.is_tensor("src") else operand(op, "value", wire.dtype)
        source = source if source.shape else op.emit.broadcast(source, index.shape)
        attrs: dict[str, Attr] = {"axis": op.axis(op.integer("dim"), len(wire.shape)), "mode": mode}
        chosen = "add" if op.has("reduce") else mode
        return op.emit.emit("scatter", wire, index, source, attrs={**attrs, "mode": chosen})

    return meaning


def _index_add(op: Operation) -> Wire:
    """Rows added at places: a scatter whose index repeats along the other dimensions."""
    wire, index, source = op.tensor("self"), op.tensor("index"), op.tensor("source")
    axis = op.axis(op.integer("dim"), len(wire.shape))
    if op.number("alpha", 1) != 1:
        source = op.emit.elementwise(
            "mul", source, op.emit.constant(wire.dtype, op.number("alpha")), dtype=wire.dtype
        )
    column = op.emit.reshape(index, [index.shape[0] if dim == axis else 1 for dim in range(len(wire.shape))])
    spread = op.emit.broadcast(column, source.shape)
    return op.emit.emit("scatter", wire, spread, source, attrs={"axis": axis, "mode": "add"})


def _index_copy(op: Operation) -> Wire:
    wire, index, source = op.tensor("self"), op.tensor("index"), op.tensor("source")
    axis = op.axis(op.integer("dim"), len(wire.shape))
    column = op.emit.reshape(index, [index.shape[0] if dim == axis else 1 for dim in range(len(wire.shape))])
    spread = op.emit.broadcast(column, source.shape)
    return op.emit.emit("scatter", wire, spread, source, attrs={"axis": axis, "mode": "set"})


def _index_put(op: Operation) -> Wire:
    """Indices before some dimensions: those come first, and go back after."""
    wire, values = op.tensor("self"), operand(op, "values", op.tensor("self").dtype)
    given = op.maybe_tensors("indices")
    places = [place for place, index in enumerate(given) if index is not None]
    present = [index for index in given if index is not None]
    if len(present) == 1 and present[0].dtype == "bool":
        return _masked(op, wire, present[0], values, places[0])
    if not places or len(given) > len(wire.shape):
        raise damaged(f"{op.call.name} indexes {len(wire.shape)} dimensions with {len(given)} indices")
    indices = [
        wrapped(op, _integers(op, index), wire.shape[at]) for at, index in zip(places, present, strict=True)
    ]
    if places != list(range(len(places))) and len(places) != 1:
        raise Unmodelled("a write at indices with dimensions before them")
    mode = "add" if op.flag("accumulate", False) else "set"
    if places == list(range(len(places))):
        return op.emit.emit("index_put", wire, values, *indices, attrs={"mode": mode})
    return _put_inside(op, wire, values, indices[0], places[0], mode)


def _put_inside(op: Operation, wire: Wire, values: Wire, index: Wire, axis: int, mode: str) -> Wire:
    """x[:, i] = v: with the indexed dimension moved to the front, and moved back."""
    rank = len(wire.shape)
    order = [axis, *(dim for dim in range(rank) if dim != axis)]
    addressed = (*wire.shape[:axis], *index.shape, *wire.shape[axis + 1 :])
    full = op.emit.broadcast(values, addressed)
    inner = list(range(axis, axis + len(index.shape)))
    rest = [dim for dim in range(len(addressed)) if dim not in inner]
    moved = op.emit.transpose(full, [*inner, *rest])
    put = op.emit.emit("index_put", op.emit.transpose(wire, order), moved, index, attrs={"mode": mode})
    return op.emit.transpose(put, [order.index(dim) for dim in range(rank)])


def _masked(op: Operation, wire: Wire, mask: Wire, values: Wire, place: int) -> Wire:
    """x[mask] = number: a choice. With more values than one their places depend on data."""
    if prod(values.shape) != 1 or place or op.flag("accumulate", False):
        raise Unmodelled("values written under a mask")
    shape = mask.shape + (1,) * (len(wire.shape) - len(mask.shape))
    condition = op.emit.reshape(mask, shape)
    value = op.emit.reshape(values, ())
    return op.emit.elementwise("where", condition, value, wire, dtype=wire.dtype)


def _slice_scatter(op: Operation) -> Wire:
    wire, source = op.tensor("self"), op.tensor("src")
    axis = op.axis(op.integer("dim", 0), len(wire.shape))
    bounds = [op.integer(name) if op.has(name) else None for name in ("start", "end")]
    start, _, _ = slice(*bounds).indices(wire.shape[axis])
    starts = [start if dim == axis else 0 for dim in range(len(wire.shape))]
    steps = [op.integer("step", 1) if dim == axis else 1 for dim in range(len(wire.shape))]
    return put(op.emit, wire, op.emit.cast(source, wire.dtype), starts, steps)


def _select_scatter(op: Operation) -> Wire:
    wire, source = op.tensor("self"), op.tensor("src")
    axis = op.axis(op.integer("dim"), len(wire.shape))
    index = op.axis(op.integer("index"), wire.shape[axis])
    starts = tuple(index if dim == axis else 0 for dim in range(len(wire.shape)))
    slab = op.emit.reshape(source, (*wire.shape[:axis], 1, *wire.shape[axis + 1 :]))
    return op.emit.emit("update_slice", wire, op.emit.cast(slab, wire.dtype), attrs={"starts": starts})


def _one_hot(op: Operation) -> Wire:
    attrs: dict[str, Attr] = {"classes": op.result.shape[-1]}
    return op.emit.emit("one_hot", op.tensor("self"), declared=op.result, attrs=attrs)


INDEXING: Meanings = MappingProxyType({
    "aten.embedding": _embedding,
    "aten.index_select": _index_select,
    "aten.index": _index,
    "aten.gather": _gather,
    "aten.take_along_dim": _take_along_dim,
    "aten.scatter": _scatter("set"),
    "aten.scatter_add": _scatter("add"),
    "aten.index_add": _index_add,
    "aten.index_copy": _index_copy,
    "aten.index_put": _index_put,
    "aten._unsafe_index": _index,
    "aten._index_put_impl": _index_put,
    "aten.slice_scatter": _slice_scatter,
    "aten.select_scatter": _select_scatter,
    "aten.one_hot": _one_hot,
})  # fmt: skip
