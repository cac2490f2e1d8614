"""Meanings of the leaves that need nothing from outside."""

from collections.abc import Sequence
from math import prod

import numpy as np

from scalify.errors import ScalifyError
from scalify.ir.mesh import RankInt, on_rank
from scalify.ir.ops.dtypes import KIND_OF
from scalify.ir.ops.meaning.storage import stored
from scalify.ir.ops.spec import Array, Call


def constant(call: Call, values: Sequence[Array]) -> Array:
    """The stated elements; one element stands for all."""
    data, declared = call.attrs.get("data"), call.target()
    if not isinstance(data, tuple):
        raise ScalifyError(
            f"the values of a constant {declared.dtype}{list(declared.shape)} are not in the graph",
            hint="load the graph from a file that holds its constants",
        )
    numbers = [on_rank(item, call.rank) if isinstance(item, RankInt) else item for item in data]
    if KIND_OF[declared.dtype] == "complex":
        flat = np.array(numbers, dtype=np.float64)
        elements: Array = flat[0::2] + 1j * flat[1::2]
    elif KIND_OF[declared.dtype] == "int":
        elements = np.array([_as_int64(number) for number in numbers], dtype=np.int64)
    else:
        elements = stored(np.array(numbers, dtype=np.float64), declared.dtype)
    if elements.size == prod(declared.shape):
        return elements.reshape(declared.shape)
    return np.broadcast_to(elements.reshape(()), declared.shape)


def _as_int64(number: object) -> int:
    assert isinstance(number, int)
    return (number + 2**63) % 2**64 - 2**63


def iota(call: Call, values: Sequence[Array]) -> Array:
    """The index along one axis."""
    declared, axis = call.target(), call.integer("axis")
    counter = np.arange(declared.shape[axis], dtype=np.int64)
    shape = tuple(-1 if dim == axis else 1 for dim in range(len(declared.shape)))
    return stored(np.broadcast_to(counter.reshape(shape), declared.shape), declared.dtype)


def rank(call: Call, values: Sequence[Array]) -> Array:
    """One digit of the rank's number."""
    return np.asarray(call.rank // call.integer("stride") % call.integer("size"), dtype=np.int64)
