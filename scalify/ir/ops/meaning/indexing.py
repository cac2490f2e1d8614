"""Meanings of the ops that read and write where their operands say."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from scalify.errors import OutOfRange
from scalify.ir.ops.spec import Array, Call

# NumPy's index tuples: one integer array for every addressed dimension.
Places = tuple[Any, ...]


def check_range(op: str, indices: Array, size: int) -> None:
    """Raise OutOfRange for an index that addresses nothing."""
    if indices.size and not (indices.min() >= 0 and indices.max() < size):
        raise OutOfRange(
            f"{op} is asked for index {int(indices.min())}..{int(indices.max())} among {size}",
            hint="give index inputs values within the table they address",
        )


def take(call: Call, values: Sequence[Array]) -> Array:
    """As numpy.take."""
    x, indices = values
    check_range(call.op, indices, x.shape[call.integer("axis")])
    return np.take(x, indices, axis=call.integer("axis"))


def take_along(call: Call, values: Sequence[Array]) -> Array:
    """As numpy.take_along_axis."""
    x, indices = values
    check_range(call.op, indices, x.shape[call.integer("axis")])
    return np.take_along_axis(x, indices, call.integer("axis"))


def scatter(call: Call, values: Sequence[Array]) -> Array:
    """As torch.scatter, or torch.scatter_add."""
    x, indices, src = values
    axis = call.integer("axis")
    check_range(call.op, indices, x.shape[axis])
    places: list[Any] = list(np.indices(indices.shape, sparse=True))
    places[axis] = indices
    return _written(call, x, tuple(places), src[tuple(map(slice, indices.shape))])


def index_put(call: Call, values: Sequence[Array]) -> Array:
    """x[i0, i1, ...] = src, or += src with every repetition counted."""
    x, src, *indices = values
    for dim, index in enumerate(indices):
        check_range(call.op, index, x.shape[dim])
    return _written(call, x, tuple(indices), src)


def _written(call: Call, x: Array, places: Places, src: Array) -> Array:
    result = x.copy()
    if call.text("mode") == "add":
        np.add.at(result, places, src)
    else:
        result[places] = src
    return result


def one_hot(call: Call, values: Sequence[Array]) -> Array:
    """1 at the index along a new last dimension, 0 elsewhere."""
    return values[0][..., None] == np.arange(call.integer("classes"))
