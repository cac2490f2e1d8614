"""Meanings of einsum, convolution and pooling: sums and extremes over windows."""

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from scalify.ir.ops.spec import Array, Call

WORTH_A_PLAN = 4096
"""Elements of all operands."""


def einsum(call: Call, values: Sequence[Array]) -> Array:
    """As numpy.einsum. Planning how to multiply pays only where there is much to multiply."""
    plans = len(values) > 1 and sum(value.size for value in values) > WORTH_A_PLAN
    return np.asarray(np.einsum(call.text("spec"), *values, optimize=plans))


def conv(call: Call, values: Sequence[Array]) -> Array:
    """x [N,C,*S], w [O,C/groups,*K] -> [N,O,*S']."""
    x, w = values
    groups, kernel = call.integer("groups"), w.shape[2:]
    windows_NCSK = _windows(call, x, kernel, call.integers("dilation"), 0)  # noqa: N806
    batch, spatial = x.shape[0], windows_NCSK.shape[2 : 2 + len(kernel)]
    grouped = windows_NCSK.reshape(batch, groups, w.shape[1], *spatial, *kernel)
    weights = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    places, taps = "stuvwxyz"[: len(kernel)], "abdefhij"[: len(kernel)]
    spec = f"ngc{places}{taps},goc{taps}->ngo{places}"
    return np.einsum(spec, grouped, weights, optimize=True).reshape(batch, w.shape[0], *spatial)


def max_pool(call: Call, values: Sequence[Array]) -> Array:
    """The greatest element under the window; padding is less than everything."""
    (x,) = values
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(np.int64).min
    kernel = call.integers("kernel")
    return _windows(call, x, kernel, call.integers("dilation"), lowest).max(axis=_taps(kernel))


def avg_pool(call: Call, values: Sequence[Array]) -> Array:
    """The mean under the window, of which padding is a part or is not."""
    (x,) = values
    kernel = call.integers("kernel")
    ones = (1,) * len(kernel)
    total = _windows(call, x, kernel, ones, 0).sum(axis=_taps(kernel))
    counted = np.ones_like(x)
    padding = 1 if call.flag("count_padding") else 0
    return total / _windows(call, counted, kernel, ones, padding).sum(axis=_taps(kernel))


def _taps(kernel: Sequence[int]) -> tuple[int, ...]:
    return tuple(range(-len(kernel), 0))


def _windows(call: Call, x: Array, kernel: Sequence[int], dilation: Sequence[int], fill: float) -> Array:
    """[N,C,*S] -> [N,C,*S',*K]: what lies under the window at each of its places."""
    padded = np.pad(x, ((0, 0), (0, 0), *call.pairs("padding")), constant_values=fill)
    reach = tuple((size - 1) * gap + 1 for size, gap in zip(kernel, dilation, strict=True))
    dims = tuple(range(2, 2 + len(kernel)))
    steps = tuple(slice(None, None, step) for step in (*call.integers("strides"), *dilation))
    return sliding_window_view(padded, reach, axis=dims)[(slice(None), slice(None), *steps)]
