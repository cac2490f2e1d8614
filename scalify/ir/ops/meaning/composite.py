"""Meanings of softmax, norms, attention, losses and interpolation."""

from collections.abc import Sequence

import numpy as np

from scalify.ir.ops.meaning.indexing import check_range
from scalify.ir.ops.spec import Array, Call


def softmax(call: Call, values: Sequence[Array]) -> Array:
    """exp(x) / sum(exp(x)). A row of -inf has no value (NaN)."""
    return _softmax(values[0], call.integer("axis"))


def _softmax(x: Array, axis: int) -> Array:
    weights = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    return weights / np.sum(weights, axis=axis, keepdims=True)


def log_softmax(call: Call, values: Sequence[Array]) -> Array:
    """x - log(sum(exp(x)))."""
    (x,) = values
    return x - _logsumexp(x, (call.integer("axis"),), keepdims=True)


def logsumexp(call: Call, values: Sequence[Array]) -> Array:
    """log(sum(exp(x)))."""
    return _logsumexp(values[0], call.integers("axes"), keepdims=call.flag("keepdims"))


def _logsumexp(x: Array, axes: tuple[int, ...], *, keepdims: bool) -> Array:
    greatest = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(greatest), greatest, 0.0)
    total = np.log(np.sum(np.exp(x - shift), axis=axes, keepdims=True)) + shift
    return total if keepdims else np.squeeze(total, axis=axes)


def layer_norm(call: Call, values: Sequence[Array]) -> Array:
    """(x - mean) / sqrt(var + eps) * weight + bias; the variance is that of the whole, not of a sample."""
    x, *affine = values
    axes = call.integers("axes")
    return _affine(_normalised(x, axes, call.number("eps")), affine, axes)


def rms_norm(call: Call, values: Sequence[Array]) -> Array:
    """x / sqrt(mean(x^2) + eps) * weight."""
    x, *affine = values
    axes = call.integers("axes")
    mean_square = np.mean(np.square(x), axis=axes, keepdims=True)
    return _affine(x / np.sqrt(mean_square + call.number("eps")), affine, axes)


def group_norm(call: Call, values: Sequence[Array]) -> Array:
    """x [N,C,*]: a layer norm within each group of neighbouring channels, then weights per channel."""
    x, *affine = values
    groups = call.integer("groups")
    grouped = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    axes = tuple(range(2, grouped.ndim))
    return _affine(_normalised(grouped, axes, call.number("eps")).reshape(x.shape), affine, (1,))


def batch_norm(call: Call, values: Sequence[Array]) -> Array:
    """x [N,C,*] by the stated mean and variance of each channel."""
    x, mean, variance, *affine = values
    mean, variance = _along(mean, x.ndim, (1,)), _along(variance, x.ndim, (1,))
    return _affine((x - mean) / np.sqrt(variance + call.number("eps")), affine, (1,))


def _normalised(x: Array, axes: tuple[int, ...], eps: float) -> Array:
    centred = x - np.mean(x, axis=axes, keepdims=True)
    return centred / np.sqrt(np.mean(np.square(centred), axis=axes, keepdims=True) + eps)


def _affine(x: Array, weight_and_bias: Sequence[Array], axes: tuple[int, ...]) -> Array:
    if weight_and_bias:
        x = x * _along(weight_and_bias[0], x.ndim, axes)
    if len(weight_and_bias) > 1:
        x = x + _along(weight_and_bias[1], x.ndim, axes)
    return x


def _along(weight: Array, rank: int, axes: tuple[int, ...]) -> Array:
    """A weight of the sizes of ``axes``, shaped so that it broadcasts along the other dimensions."""
    shape = [1] * rank
    for axis, size in zip(axes, weight.shape, strict=True):
        shape[axis] = size
    return weight.reshape(shape)


def attention(call: Call, values: Sequence[Array]) -> Array:
    """softmax(scale * q k^T + mask) v, query head h reading key and value head h // (H / Hkv)."""
    q, k, v, *mask = values
    shared = q.shape[-3] // k.shape[-3]
    k, v = np.repeat(k, shared, axis=-3), np.repeat(v, shared, axis=-3)
    scores = call.number("scale") * np.matmul(q, np.swapaxes(k, -1, -2))
    for values_or_truth in mask:
        if values_or_truth.dtype == np.bool_:
            scores = np.where(values_or_truth, scores, -np.inf)
        else:
            scores = scores + values_or_truth
    if call.flag("causal"):
        scores = np.where(np.tril(np.ones(scores.shape[-2:], dtype=np.bool_)), scores, -np.inf)
    return np.matmul(_softmax(scores, -1), v)


def cross_entropy(call: Call, values: Sequence[Array]) -> Array:
    """-log_softmax(logits) at the target; 0 for rows that are ignored, which the mean leaves out."""
    logits, target = values
    counted = target != call.integer("ignore_index")
    chosen = np.where(counted, target, 0)
    check_range(call.op, chosen, logits.shape[1])
    losses = _logsumexp(logits, (1,), keepdims=False) - logits[np.arange(len(target)), chosen]
    losses = np.where(counted, losses, 0.0)
    match call.text("reduction"):
        case "none":
            return losses
        case "sum":
            return np.asarray(np.sum(losses))
        case _:
            return np.asarray(np.sum(losses) / np.sum(counted))


def interpolate(call: Call, values: Sequence[Array]) -> Array:
    """Along one spatial dimension after the other."""
    (x,) = values
    scales = call.attrs["scales"]
    assert isinstance(scales, tuple)
    for dim, (size, scale) in enumerate(zip(call.target().shape[2:], scales, strict=True), start=2):
        assert isinstance(scale, int | float)
        x = _resampled(call, x, dim, size, scale)
    return x


def _resampled(call: Call, x: Array, dim: int, size: int, scale: float) -> Array:
    places, last = np.arange(size), x.shape[dim] - 1
    if call.text("mode") == "nearest":
        return np.take(x, np.minimum(np.floor(places * scale).astype(np.int64), last), axis=dim)
    source = places * scale if call.flag("align_corners") else np.maximum((places + 0.5) * scale - 0.5, 0)
    below = np.minimum(np.floor(source).astype(np.int64), last)
    above = np.minimum(below + 1, last)
    share = _along(source - below, x.ndim, (dim,))
    return np.take(x, below, axis=dim) * (1 - share) + np.take(x, above, axis=dim) * share
