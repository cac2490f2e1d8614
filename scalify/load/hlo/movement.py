"""Opcodes that place elements: reshape, transpose, broadcast, slices, padding."""

from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType

from scalify.ir.graph import NodeId, TensorType
from scalify.ir.mesh import RankInt
from scalify.load.hlo.by_rank import moved
from scalify.load.hlo.emit import Step, Value
from scalify.load.hlo.opaque import opaque
from scalify.load.hlo.program import Shape


def _reshape(step: Step) -> Value:
    (operand,) = step.arrays(1)
    if prod(step.type.shape) != prod(step.type_of(operand).shape):
        raise step.wrong("changes the number of elements")
    return step.reshaped(operand, step.type.shape)


def _transpose(step: Step) -> Value:
    (operand,) = step.arrays(1)
    return step.transposed(operand, _permutation(step, len(step.type_of(operand).shape)), "")


def _permutation(step: Step, rank: int) -> tuple[int, ...]:
    perm = step.axes(step.instruction.dimensions, rank, "the permutation")
    if len(perm) != rank:
        raise step.wrong(f"permutes {rank} dimensions as {list(perm)}")
    return perm


def _broadcast(step: Step) -> Value:
    """HLO may name the result's dimensions in any order; the op wants them rising."""
    (operand,) = step.arrays(1)
    shape, dims = step.type.shape, step.instruction.dimensions
    rank = len(step.type_of(operand).shape)
    step.axes(dims, len(shape), "result dimensions")
    if len(dims) != rank:
        raise step.wrong(f"places {rank} dimensions at {list(dims)}")
    order = tuple(sorted(range(rank), key=dims.__getitem__))
    operand = step.transposed(operand, order, "order")
    if step.type_of(operand).shape == shape:
        return operand
    return step.emit("broadcast", (operand,), dims=tuple(sorted(dims)))


def _bitcast(step: Step) -> Value:
    """The same bytes in memory under another shape: a reshape of dimensions in the layouts' order."""
    (operand,) = step.arrays(1)
    source, target = step.operand_shapes[0], step.instruction.shape
    if (
        source.element != target.element
        or source.tiled
        or target.tiled
        or prod(source.dims) != prod(target.dims)
    ):
        return opaque(step)
    stored, wanted = _stored_order(step, source), _stored_order(step, target)
    laid_out = step.transposed(operand, stored, "stored")
    laid_out = step.reshaped(laid_out, tuple(target.dims[axis] for axis in wanted), "reshaped")
    back = tuple(wanted.index(axis) for axis in range(len(wanted)))
    return step.transposed(laid_out, back, "back")


def _stored_order(step: Step, shape: Shape) -> tuple[int, ...]:
    rank = len(shape.dims)
    if shape.minor_to_major is None:
        return tuple(range(rank))
    order = step.axes(tuple(reversed(shape.minor_to_major)), rank, "the layout")
    if len(order) != rank:
        raise step.wrong(f"has a layout of {len(order)} dimensions for {rank}")
    return order


def _slice(step: Step) -> Value:
    (operand,) = step.arrays(1)
    slices, shape = step.instruction.slices, step.type_of(operand).shape
    if len(slices) != len(shape):
        raise step.wrong(f"slices {len(slices)} of {len(shape)} dimensions")
    starts = tuple(start for start, _, _ in slices)
    limits = tuple(limit for _, limit, _ in slices)
    steps = tuple(stride for _, _, stride in slices)
    if any(stride < 1 for stride in steps):
        raise step.wrong(f"has the strides {list(steps)}")
    if not any(starts) and limits == shape and step.type.shape == shape:
        return operand
    return step.emit("slice", (operand,), starts=starts, limits=limits, steps=steps)


def _concatenate(step: Step) -> Value:
    operands, dims = step.arrays(), step.instruction.dimensions
    if len(dims) != 1 or not operands:
        raise step.wrong(f"joins {len(operands)} arrays along {list(dims)}")
    return operands[0] if len(operands) == 1 else step.emit("concat", operands, axis=dims[0])


def _pad(step: Step) -> Value:
    operands, padding = step.arrays(2), step.instruction.padding
    if all(amounts == (0, 0, 0) for amounts in padding) and step.type == step.type_of(operands[0]):
        return operands[0]
    low, high, interior = zip(*padding, strict=True) if padding else ((), (), ())
    return step.emit("pad", operands, low=low, high=high, interior=interior)


def _reverse(step: Step) -> Value:
    return step.emit("reverse", step.arrays(1), axes=step.instruction.dimensions)


def check_box(step: Step, sizes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Refuse a box that is not within an array."""
    fits = len(sizes) == len(shape) and all(
        0 <= size <= full for size, full in zip(sizes, shape, strict=True)
    )
    if not fits:
        raise step.wrong(f"takes {list(sizes)} of {list(shape)}")


def _dynamic_slice(step: Step) -> Value:
    operand, starts = step.array(0), step.arrays()[1:]
    sizes, shape = step.instruction.sizes, step.type_of(operand).shape
    check_box(step, sizes, shape)
    starts = _starts(step, starts, len(shape))
    places = _places(step, starts, sizes, shape)
    if places is None:
        return step.emit("dynamic_slice", (operand, *starts), sizes=sizes)
    limits = tuple(moved(place, size) for place, size in zip(places, sizes, strict=True))
    if sizes == shape:
        return operand
    return step.emit("slice", (operand,), starts=places, limits=limits, steps=(1,) * len(shape))


def _places(
    step: Step, starts: tuple[NodeId, ...], sizes: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[int | RankInt, ...] | None:
    """The starts, if they follow from constants and the rank's number."""
    if len(starts) != len(shape):
        raise step.wrong(f"has {len(starts)} starts for {len(shape)} dimensions")
    room = tuple(full - size for full, size in zip(shape, sizes, strict=True))
    return step.emission.by_rank.starts(starts, room)


def _dynamic_update_slice(step: Step) -> Value:
    operand, update, starts = step.array(0), step.array(1), step.arrays()[2:]
    shape, sizes = step.type_of(operand).shape, step.type_of(update).shape
    check_box(step, sizes, shape)
    starts = _starts(step, starts, len(shape))
    places = _places(step, starts, sizes, shape)
    if places is None:
        return step.emit("dynamic_update_slice", (operand, update, *starts))
    return step.emit("update_slice", (operand, update), starts=places)


def _starts(step: Step, starts: tuple[NodeId, ...], rank: int) -> tuple[NodeId, ...]:
    """Old modules give all starts in one vector."""
    if len(starts) == 1 and step.type_of(starts[0]).shape == (rank,):
        return tuple(_element(step, starts[0], index) for index in range(rank))
    return starts


def _element(step: Step, vector: NodeId, index: int) -> NodeId:
    dtype = step.type_of(vector).dtype
    part = step.emit(
        "slice",
        (vector,),
        TensorType(dtype, (1,)),
        f"start {index} of 1",
        starts=(index,),
        limits=(index + 1,),
        steps=(1,),
    )
    return step.reshaped(part, (), f"start {index}")


def _identity(step: Step) -> Value:
    (value,) = step.operands[:1] or (None,)
    if len(step.operands) != 1:
        raise step.wrong(f"has {len(step.operands)} operands, not 1")
    return value


HANDLERS: Mapping[str, Callable[[Step], Value]] = MappingProxyType(
    {
        "reshape": _reshape,
        "transpose": _transpose,
        "broadcast": _broadcast,
        "bitcast": _bitcast,
        "slice": _slice,
        "concatenate": _concatenate,
        "pad": _pad,
        "reverse": _reverse,
        "dynamic-slice": _dynamic_slice,
        "dynamic-update-slice": _dynamic_update_slice,
        "copy": _identity,
        "copy-start": _identity,
        "copy-done": _identity,
        "optimization-barrier": _identity,
        "domain": _identity,
    }
)
