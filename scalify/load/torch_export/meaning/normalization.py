"""Layer, RMS, group and batch normalisation. They are kept whole; ``scalify.normalize`` takes them apart."""

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from scalify.ir.graph import Attr, DType
from scalify.load.torch_export.emit import Wire
from scalify.load.torch_export.fields import damaged
from scalify.load.torch_export.meaning.reduction import variance
from scalify.load.torch_export.operation import Meanings, Operation, Outcome, Unmodelled

# What rms_norm adds where no eps is given: the smallest step from 1 of the type it computes in.
_EPSILON: dict[DType, float] = {
    "f64": float(np.finfo(np.float64).eps), "f32": float(np.finfo(np.float32).eps),
    "f16": float(np.finfo(np.float32).eps), "bf16": float(np.finfo(np.float32).eps),
}  # fmt: skip


def _last(op: Operation, wire: Wire) -> tuple[int, ...]:
    """The dimensions that are normalised: as many as ``normalized_shape`` has."""
    shape = op.integers("normalized_shape")
    if not shape or wire.shape[len(wire.shape) - len(shape) :] != shape:
        raise damaged(f"{op.call.name} normalises {list(shape)} of {list(wire.shape)}")
    return tuple(range(len(wire.shape) - len(shape), len(wire.shape)))


def _affine(op: Operation) -> tuple[tuple[Wire, ...], Wire | None]:
    """The operands that a composite takes: weight and bias go with it, a bias without weight after it."""
    weight, bias = op.maybe_tensor("weight"), op.maybe_tensor("bias")
    if weight is None:
        return (), bias
    return (weight,) if bias is None else (weight, bias), None


def _layer_norm(op: Operation) -> Wire:
    wire = op.tensor("input")
    operands, bias = _affine(op)
    attrs: dict[str, Attr] = {"axes": _last(op, wire), "eps": float(op.number("eps", 1e-5))}
    made = op.emit.elementwise("layer_norm", wire, *operands, dtype=op.result.dtype, attrs=attrs)
    return made if bias is None else op.emit.elementwise("add", made, bias, dtype=op.result.dtype)


def _native_layer_norm(op: Operation) -> Outcome:
    """Mean and reciprocal deviation come beside the result."""
    wire = op.tensor("input")
    axes = _last(op, wire)
    return _layer_norm(op), op.emit.reduce("mean", wire, axes, True), _reciprocal_deviation(op, wire, axes)


def _reciprocal_deviation(op: Operation, wire: Wire, axes: Sequence[int]) -> Wire:
    dtype = wire.dtype
    eps = op.emit.constant(dtype, float(op.number("eps", 1e-5)))
    spread = variance(op, wire, axes, True, 0)
    return op.emit.elementwise("rsqrt", op.emit.elementwise("add", spread, eps, dtype=dtype), dtype=dtype)


def _rms_norm(op: Operation) -> Wire:
    wire = op.tensor("input")
    weight = op.maybe_tensor("weight")
    eps = float(op.number("eps", _EPSILON.get(wire.dtype, 0.0)))
    operands = () if weight is None else (weight,)
    attrs: dict[str, Attr] = {"axes": _last(op, wire), "eps": eps}
    return op.emit.elementwise("rms_norm", wire, *operands, dtype=op.result.dtype, attrs=attrs)


def _fused_rms_norm(op: Operation) -> Outcome:
    return _rms_norm(op), None


def _group_norm(op: Operation) -> Wire:
    name = "num_groups" if op.has("num_groups") else "group"
    wire = op.tensor("input")
    operands, bias = _affine(op)
    attrs: dict[str, Attr] = {"groups": op.integer(name), "eps": float(op.number("eps", 1e-5))}
    made = op.emit.elementwise("group_norm", wire, *operands, dtype=op.result.dtype, attrs=attrs)
    if bias is None:
        return made
    column = op.emit.reshape(bias, (bias.shape[0], *(1 for _ in wire.shape[2:])))
    return op.emit.elementwise("add", made, column, dtype=op.result.dtype)


def _native_group_norm(op: Operation) -> Outcome:
    return _group_norm(op), None, None


def _batch_norm(op: Operation) -> Wire:
    """At inference only: with the statistics it was given."""
    if op.flag("training", False) or not op.has("running_mean"):
        raise Unmodelled("batch normalisation while training")
    wire = op.tensor("input")
    operands, bias = _affine(op)
    if bias is not None:
        raise Unmodelled("batch normalisation with a bias alone")
    statistics = (op.tensor("running_mean"), op.tensor("running_var"))
    attrs: dict[str, Attr] = {"eps": float(op.number("eps", 1e-5))}
    return op.emit.elementwise("batch_norm", wire, *statistics, *operands, dtype=op.result.dtype, attrs=attrs)


def _native_batch_norm(op: Operation) -> Outcome:
    return _batch_norm(op), None, None


NORMALIZATION: Meanings = MappingProxyType({
    "aten.layer_norm": _layer_norm,
    "aten.native_layer_norm": _native_layer_norm,
    "aten.rms_norm": _rms_norm,
    "aten._fused_rms_norm": _fused_rms_norm,
    "aten.group_norm": _group_norm,
    "aten.native_group_norm": _native_group_norm,
    "aten.batch_norm": _batch_norm,
    "aten._native_batch_norm_legit_no_training": _native_batch_norm,
})  # fmt: skip
