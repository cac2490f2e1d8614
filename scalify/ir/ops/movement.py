"""Ops that place elements and compute nothing: reshape, transpose, slices, padding."""

from math import prod

from scalify.ir.graph import TensorType
from scalify.ir.mesh import RankInt
from scalify.ir.ops.attributes import AttrSpec
from scalify.ir.ops.dtypes import KIND_OF, promote
from scalify.ir.ops.meaning import movement as means
from scalify.ir.ops.shapes import Shape, axes, axis, difference, fits, per_dimension, shown
from scalify.ir.ops.spec import Call, define, mistake


def _reshape(call: Call) -> TensorType:
    shape = call.target().shape
    if prod(shape) != prod(call.shape()):
        raise mistake(f"reshape from {shown(call.shape())} to {shown(shape)} changes the number of elements")
    return TensorType(call.operands[0].dtype, shape)


def _transpose(call: Call) -> TensorType:
    shape = call.shape()
    perm = axes(call, "perm", len(shape))
    if len(perm) != len(shape):
        raise mistake(f"perm {perm} of transpose is not of {len(shape)} dimensions")
    return TensorType(call.operands[0].dtype, tuple(shape[dim] for dim in perm))


def _broadcast(call: Call) -> TensorType:
    shape, target, dims = call.shape(), call.target().shape, call.integers("dims")
    if len(dims) != len(shape):
        raise mistake(f"dims {dims} of broadcast should have {len(shape)} entries")
    if list(dims) != sorted(set(dims)) or any(not 0 <= dim < len(target) for dim in dims):
        raise mistake(f"dims {dims} of broadcast should rise within {len(target)} dimensions")
    if any(size not in (1, target[dim]) for dim, size in zip(dims, shape, strict=True)):
        raise mistake(f"{shown(shape)} does not broadcast to {shown(target)} along dims {dims}")
    return TensorType(call.operands[0].dtype, target)


def _slice(call: Call) -> TensorType:
    shape = call.shape()
    starts, limits = call.rank_integers("starts"), call.rank_integers("limits")
    steps = per_dimension(call, "steps", len(shape))
    if not len(starts) == len(limits) == len(shape):
        raise mistake(f"starts and limits of slice should have {len(shape)} entries")
    if any(step < 1 for step in steps):
        raise mistake(f"steps {steps} of slice should be at least 1")
    sizes = tuple(_span(call, dim, starts[dim], limits[dim], size) for dim, size in enumerate(shape))
    return TensorType(
        call.operands[0].dtype, tuple(-(-size // step) for size, step in zip(sizes, steps, strict=True))
    )


def _span(call: Call, dim: int, start: int | RankInt, limit: int | RankInt, size: int) -> int:
    span = difference(limit, start)
    if span is None:
        raise mistake(f"the length of slice along dimension {dim} depends on the rank")
    if span < 0 or not fits(start, 0, size - span, call.mesh.size):
        raise mistake(f"slice [{_bound(start)}:{_bound(limit)}] along dimension {dim} is outside 0..{size}")
    return span


def _bound(value: int | RankInt) -> str:
    return f"{value.base}+f(rank)" if isinstance(value, RankInt) else str(value)


def _concat(call: Call) -> TensorType:
    first = call.shape()
    along = axis(call, "axis", len(first))
    for operand in call.operands[1:]:
        if len(operand.shape) != len(first) or _without(operand.shape, along) != _without(first, along):
            raise mistake(f"concat along {along} of {shown(first)} and {shown(operand.shape)}")
    total = sum(operand.shape[along] for operand in call.operands)
    shape = (*first[:along], total, *first[along + 1 :])
    return TensorType(promote(*call.dtypes()), shape)


def _without(shape: Shape, dim: int) -> Shape:
    return shape[:dim] + shape[dim + 1 :]


def _pad(call: Call) -> TensorType:
    """As XLA: negative low and high crop; interior elements go between neighbours."""
    shape = call.shape()
    low, high, interior = (per_dimension(call, name, len(shape)) for name in ("low", "high", "interior"))
    if call.shape(1):
        raise mistake(f"the padding value is a scalar, not {shown(call.shape(1))}")
    if any(count < 0 for count in interior):
        raise mistake(f"interior {interior} of pad should not be negative")
    sizes = tuple(
        size + before + after + max(size - 1, 0) * between
        for size, before, after, between in zip(shape, low, high, interior, strict=True)
    )
    if any(size < 0 for size in sizes):
        raise mistake(f"pad crops {shown(shape)} to less than nothing")
    return TensorType(promote(*call.dtypes()), sizes)


def _reverse(call: Call) -> TensorType:
    axes(call, "axes", len(call.shape()))
    return call.operands[0]


def _update_slice(call: Call) -> TensorType:
    shape, update = call.shape(), call.shape(1)
    starts = call.rank_integers("starts")
    if not len(starts) == len(shape) == len(update):
        raise mistake(f"update_slice of {shown(update)} into {shown(shape)} at {len(starts)} starts")
    for dim, start in enumerate(starts):
        if not fits(start, 0, shape[dim] - update[dim], call.mesh.size):
            raise mistake(f"update_slice at {_bound(start)} along dimension {dim} is outside 0..{shape[dim]}")
    return _with_update(call)


def _with_update(call: Call) -> TensorType:
    into, update = call.operands[0].dtype, call.operands[1].dtype
    if KIND_OF[into] != KIND_OF[update]:
        raise mistake(f"{call.op} writes {update} into {into}")
    return call.operands[0]


def _dynamic_slice(call: Call) -> TensorType:
    """Starts are clamped so that the box fits, as XLA does."""
    shape = call.shape()
    sizes = per_dimension(call, "sizes", len(shape))
    _check_starts(call, 1, len(shape))
    if any(not 0 <= part <= size for part, size in zip(sizes, shape, strict=True)):
        raise mistake(f"sizes {sizes} of dynamic_slice exceed {shown(shape)}")
    return TensorType(call.operands[0].dtype, sizes)


def _dynamic_update_slice(call: Call) -> TensorType:
    """Starts are clamped so that the box fits, as XLA does."""
    shape, update = call.shape(), call.shape(1)
    _check_starts(call, 2, len(shape))
    if len(update) != len(shape) or any(part > size for part, size in zip(update, shape, strict=True)):
        raise mistake(f"dynamic_update_slice of {shown(update)} into {shown(shape)}")
    return _with_update(call)


def _check_starts(call: Call, first: int, count: int) -> None:
    starts = call.operands[first:]
    if len(starts) != count:
        raise mistake(f"{call.op} of {count} dimensions takes {count} starts, not {len(starts)}")
    if any(start.shape or KIND_OF[start.dtype] != "int" for start in starts):
        raise mistake(f"the starts of {call.op} are integer scalars")


def _triangle(call: Call) -> TensorType:
    if len(call.shape()) < 2:
        raise mistake(f"{call.op} needs two dimensions, not {shown(call.shape())}")
    return call.operands[0]


_INTS = AttrSpec(kind="ints")
_PLACES = AttrSpec(kind="rank integers")

MOVEMENT = (
    define("reshape", 1, _reshape, means.reshape),
    define("transpose", 1, _transpose, means.transpose, perm=_INTS),
    define("broadcast", 1, _broadcast, means.broadcast, dims=_INTS),
    define("slice", 1, _slice, means.take_slice, starts=_PLACES, limits=_PLACES, steps=_INTS),
    define("concat", (1, None), _concat, means.concat, axis=AttrSpec(kind="int")),
    define("pad", 2, _pad, means.pad, low=_INTS, high=_INTS, interior=_INTS),
    define("reverse", 1, _reverse, means.reverse, axes=_INTS),
    define("update_slice", 2, _update_slice, means.update_slice, starts=_PLACES),
    define("dynamic_slice", (1, None), _dynamic_slice, means.dynamic_slice, sizes=_INTS),
    define("dynamic_update_slice", (2, None), _dynamic_update_slice, means.dynamic_update_slice),
    define("tril", 1, _triangle, means.tril, k=AttrSpec(kind="int", default=0)),
    define("triu", 1, _triangle, means.triu, k=AttrSpec(kind="int", default=0)),
)
