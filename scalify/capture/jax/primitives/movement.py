"""Primitives that place elements: reshape, transpose, broadcast, slices, padding."""

from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType

from scalify.capture.jax.reader import Call, Handler
from scalify.load.hlo.program import Shape


def _reshape(call: Call) -> Sequence[int]:
    order = call.params.get("dimensions")
    (value,) = call.operands
    if order is not None:
        value = call.transposed(value, call.integers("dimensions"))
    return (call.reshaped(value, call.shape.dims),)


def _as_shaped(call: Call) -> Sequence[int]:
    """Dimensions of one element come or go."""
    return (call.reshaped(call.operands[0], call.shape.dims),)


def _transpose(call: Call) -> Sequence[int]:
    return (call.transposed(call.operands[0], call.integers("permutation")),)


def _broadcast(call: Call) -> Sequence[int]:
    if call.shape_at(0).dims == call.shape.dims:
        return call.operands
    return (call.add("broadcast", call.operands[:1], dimensions=call.integers("broadcast_dimensions")),)


def _slice(call: Call) -> Sequence[int]:
    starts, limits = call.integers("start_indices"), call.integers("limit_indices")
    steps = call.integers("strides") if call.params["strides"] else (1,) * len(starts)
    return (call.add("slice", call.operands, slices=tuple(zip(starts, limits, steps, strict=True))),)


def _split(call: Call) -> Sequence[int]:
    """Pieces of given sizes along an axis."""
    axis, start = int(call.params["axis"]), 0
    dims = call.shape_at(0).dims
    pieces: list[int] = []
    for shape in call.shapes:
        bounds = [(0, size, 1) for size in dims]
        bounds[axis] = (start, start + shape.dims[axis], 1)
        start += shape.dims[axis]
        pieces.append(call.add("slice", call.operands, shape, slices=tuple(bounds)))
    return pieces


def _concatenate(call: Call) -> Sequence[int]:
    return (call.add("concatenate", call.operands, dimensions=(int(call.params["dimension"]),)),)


def _stack(call: Call) -> Sequence[int]:
    """Operands side by side along a new axis."""
    axis, shape = int(call.params["axis"]), call.shape
    dims = (*shape.dims[:axis], 1, *shape.dims[axis + 1 :])
    raised = [call.reshaped(operand, dims) for operand in call.operands]
    return (call.add("concatenate", raised, dimensions=(axis,)),)


def _unstack(call: Call) -> Sequence[int]:
    axis, dims = int(call.params["axis"]), call.shape_at(0).dims
    element = call.shape_at(0).element
    rows: list[int] = []
    for place, shape in enumerate(call.shapes):
        bounds = [(0, size, 1) for size in dims]
        bounds[axis] = (place, place + 1, 1)
        row = Shape(element, (*dims[:axis], 1, *dims[axis + 1 :]))
        rows.append(call.reshaped(call.add("slice", call.operands, row, slices=tuple(bounds)), shape.dims))
    return rows


def _pad(call: Call) -> Sequence[int]:
    padding = tuple(tuple(map(int, amounts)) for amounts in call.params["padding_config"])
    return (call.add("pad", call.operands, padding=tuple((a, b, c) for a, b, c in padding)),)


def _rev(call: Call) -> Sequence[int]:
    return (call.add("reverse", call.operands, dimensions=call.integers("dimensions")),)


def _dynamic_slice(call: Call) -> Sequence[int]:
    return (call.add("dynamic-slice", call.operands, sizes=call.integers("slice_sizes")),)


def _dynamic_update_slice(call: Call) -> Sequence[int]:
    return (call.add("dynamic-update-slice", call.operands),)


def _tile(call: Call) -> Sequence[int]:
    """Repetitions of the whole along each dimension."""
    (value,) = call.operands
    shape, reps = call.shape_at(0), tuple(map(int, call.params["reps"]))
    pairs = tuple(size for pair in zip(reps, shape.dims, strict=True) for size in pair)
    places = tuple(range(1, 2 * len(shape.dims), 2))
    spread = call.add("broadcast", (value,), Shape(shape.element, pairs), dimensions=places)
    assert prod(pairs) == prod(call.shape.dims)
    return (call.reshaped(spread, call.shape.dims),)


HANDLERS: Mapping[str, Handler] = MappingProxyType(
    {
        "reshape": _reshape,
        "squeeze": _as_shaped,
        "expand_dims": _as_shaped,
        "transpose": _transpose,
        "broadcast_in_dim": _broadcast,
        "slice": _slice,
        "split": _split,
        "concatenate": _concatenate,
        "stack": _stack,
        "unstack": _unstack,
        "pad": _pad,
        "rev": _rev,
        "tile": _tile,
        "dynamic_slice": _dynamic_slice,
        "dynamic_update_slice": _dynamic_update_slice,
    }
)
