"""Meanings of the ops that place elements."""

from collections.abc import Sequence

import numpy as np

from scalify.ir.mesh import on_rank
from scalify.ir.ops.spec import Array, Call


def reshape(call: Call, values: Sequence[Array]) -> Array:
    """Row-major order is kept."""
    return values[0].reshape(call.target().shape)


def transpose(call: Call, values: Sequence[Array]) -> Array:
    """Dimension j of the result is dimension perm[j] of the operand."""
    return np.transpose(values[0], call.integers("perm"))


def broadcast(call: Call, values: Sequence[Array]) -> Array:
    """Dimension j of the operand becomes dims[j]; the others repeat."""
    (x,) = values
    target, dims = call.target().shape, call.integers("dims")
    shape = [1] * len(target)
    for dim, size in zip(dims, x.shape, strict=True):
        shape[dim] = size
    return np.broadcast_to(x.reshape(shape), target)


def take_slice(call: Call, values: Sequence[Array]) -> Array:
    """Every ``steps``-th element from start on, below limit."""
    starts = [on_rank(start, call.rank) for start in call.rank_integers("starts")]
    limits = [on_rank(limit, call.rank) for limit in call.rank_integers("limits")]
    return values[0][tuple(map(slice, starts, limits, call.integers("steps")))]


def concat(call: Call, values: Sequence[Array]) -> Array:
    """One operand after the other."""
    return np.concatenate(values, axis=call.integer("axis"))


def pad(call: Call, values: Sequence[Array]) -> Array:
    """Interior first, then the edges, which crop where they are negative."""
    x, fill = values
    interior = call.integers("interior")
    spread = tuple(size + max(size - 1, 0) * gap for size, gap in zip(x.shape, interior, strict=True))
    wide = np.full(spread, fill, dtype=np.result_type(x, fill))
    wide[tuple(slice(None, None, gap + 1) for gap in interior)] = x
    edges = [(max(low, 0), max(high, 0)) for low, high in _edges(call)]
    padded = np.full(
        tuple(size + low + high for size, (low, high) in zip(spread, edges, strict=True)),
        fill,
        dtype=wide.dtype,
    )
    padded[tuple(slice(low, low + size) for size, (low, _) in zip(spread, edges, strict=True))] = wide
    return padded[
        tuple(
            slice(max(-low, 0), size + min(high, 0))
            for size, (low, high) in zip(padded.shape, _edges(call), strict=True)
        )
    ]


def _edges(call: Call) -> list[tuple[int, int]]:
    return list(zip(call.integers("low"), call.integers("high"), strict=True))


def reverse(call: Call, values: Sequence[Array]) -> Array:
    """Back to front along each of the axes."""
    return np.flip(values[0], call.integers("axes"))


def update_slice(call: Call, values: Sequence[Array]) -> Array:
    """The first operand with a box of the second's sizes replaced."""
    x, update = values
    return _replaced(x, update, [on_rank(start, call.rank) for start in call.rank_integers("starts")])


def _replaced(x: Array, update: Array, starts: Sequence[int]) -> Array:
    result = x.copy()
    result[tuple(slice(start, start + size) for start, size in zip(starts, update.shape, strict=True))] = (
        update
    )
    return result


def dynamic_slice(call: Call, values: Sequence[Array]) -> Array:
    """A box of ``sizes`` from where the operands say, moved inwards where it would stick out."""
    x, *starts = values
    sizes = call.integers("sizes")
    inside = _clamped(x, sizes, starts)
    return x[tuple(slice(start, start + size) for start, size in zip(inside, sizes, strict=True))]


def dynamic_update_slice(call: Call, values: Sequence[Array]) -> Array:
    """As update_slice, at a place that the operands say, moved inwards where it would stick out."""
    x, update, *starts = values
    return _replaced(x, update, _clamped(x, update.shape, starts))


def _clamped(x: Array, sizes: Sequence[int], starts: Sequence[Array]) -> list[int]:
    return [
        min(max(int(start), 0), whole - size)
        for start, size, whole in zip(starts, sizes, x.shape, strict=True)
    ]


def tril(call: Call, values: Sequence[Array]) -> Array:
    """Zeros above diagonal k of the last two dimensions."""
    return np.tril(values[0], call.integer("k"))


def triu(call: Call, values: Sequence[Array]) -> Array:
    """Zeros below diagonal k of the last two dimensions."""
    return np.triu(values[0], call.integer("k"))
