"""Meanings of reductions, scans and sorts."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from scalify.ir.ops.spec import Array, Call

REDUCERS: Mapping[str, Callable[..., Array]] = MappingProxyType(
    {
        "sum": np.sum,
        "mean": np.mean,
        "avg": np.mean,
        "max": np.max,
        "min": np.min,
        "prod": np.prod,
        "any": np.any,
        "all": np.all,
    }
)


def reduce(call: Call, values: Sequence[Array]) -> Array:
    """Over all of the axes at once."""
    function = REDUCERS[call.text("kind")]
    return np.asarray(function(values[0], axis=call.integers("axes"), keepdims=call.flag("keepdims")))


def argmax(call: Call, values: Sequence[Array]) -> Array:
    """Where the greatest is."""
    return np.asarray(np.argmax(values[0], axis=call.integer("axis"), keepdims=call.flag("keepdims")))


def argmin(call: Call, values: Sequence[Array]) -> Array:
    """Where the least is."""
    return np.asarray(np.argmin(values[0], axis=call.integer("axis"), keepdims=call.flag("keepdims")))


def cumsum(call: Call, values: Sequence[Array]) -> Array:
    """Each element plus all before it."""
    return np.cumsum(values[0], axis=call.integer("axis"))


def cumprod(call: Call, values: Sequence[Array]) -> Array:
    """Each element times all before it."""
    return np.cumprod(values[0], axis=call.integer("axis"))


def sort(call: Call, values: Sequence[Array]) -> Array:
    """In rising order, or falling."""
    axis = call.integer("axis")
    rising = np.sort(values[0], axis=axis)
    return np.flip(rising, axis) if call.flag("descending") else rising


def argsort(call: Call, values: Sequence[Array]) -> Array:
    """Where each element of the sorted values was."""
    return _order(values[0], call.integer("axis"), descending=call.flag("descending"))


def topk_values(call: Call, values: Sequence[Array]) -> Array:
    """The k best, best first."""
    return np.take_along_axis(values[0], topk_indices(call, values), call.integer("axis"))


def topk_indices(call: Call, values: Sequence[Array]) -> Array:
    """Where the k best are, best first."""
    axis = call.integer("axis")
    order = _order(values[0], axis, descending=call.flag("largest"))
    return np.take(order, np.arange(call.integer("k")), axis=axis)


def _order(x: Array, axis: int, *, descending: bool) -> Array:
    """Stable both ways: sorting the mirror image and mirroring the order keeps equals in theirs."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    mirrored = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(mirrored, axis)
