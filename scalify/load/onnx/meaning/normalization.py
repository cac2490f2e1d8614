"""Layer, RMS, group, instance and batch normalisation. They are kept whole where the IR has them."""

from types import MappingProxyType

from scalify.load.onnx.meaning.elementwise import applied, number
from scalify.load.onnx.model import damaged
from scalify.load.onnx.operation import Meanings, Operation, Outcome, Unmodelled
from scalify.load.onnx.tensors import as_written
from scalify.load.torch_export.emit import Wire

PER_CHANNEL = 21


def _epsilon(op: Operation) -> float:
    return as_written(op.number("epsilon", 1e-5))


def _normalised(op: Operation, wire: Wire) -> tuple[int, ...]:
    first = op.axis(op.integer("axis", -1), len(wire.shape))
    axes = tuple(range(first, len(wire.shape)))
    sizes = tuple(wire.shape[axis] for axis in axes)
    if any(op.tensor(place).shape != sizes for place in (1, 2) if op.has(place)):
        raise Unmodelled("weights that broadcast")
    return axes


def _layer_norm(op: Operation) -> Outcome:
    """Mean and reciprocal deviation come beside the result."""
    wire, weight, bias = op.tensor(0), op.tensor(1), op.maybe(2)
    axes = _normalised(op, wire)
    operands = (weight,) if bias is None else (weight, bias)
    made = applied(op, "layer_norm", wire, *operands, axes=axes, eps=_epsilon(op))
    if not op.result_of(1):
        return made
    mean = op.emit.reduce("mean", wire, axes, True)
    away = applied(op, "square", applied(op, "sub", wire, mean))
    spread = op.emit.reduce("mean", away, axes, True)
    return made, mean, applied(op, "rsqrt", applied(op, "add", spread, number(op, spread, _epsilon(op))))


def _rms_norm(op: Operation) -> Wire:
    wire = op.tensor(0)
    return applied(op, "rms_norm", wire, op.tensor(1), axes=_normalised(op, wire), eps=_epsilon(op))


def _group_norm(op: Operation) -> Wire:
    """Older versions have one weight for each group, which all its channels share."""
    wire, groups = op.tensor(0), op.integer("num_groups")
    if len(wire.shape) < 2 or groups < 1 or wire.shape[1] % groups:
        raise damaged(f"{op.what} of {list(wire.shape)} in {groups} groups")
    weights = (op.tensor(1), op.tensor(2))
    if op.opset < PER_CHANNEL:
        weights = tuple(_repeated(op, weight, wire.shape[1], groups) for weight in weights)
    return applied(op, "group_norm", wire, *weights, groups=groups, eps=_epsilon(op))


def _repeated(op: Operation, weight: Wire, channels: int, groups: int) -> Wire:
    if weight.shape != (groups,):
        raise damaged(f"{op.what} has weights {list(weight.shape)} for {groups} groups")
    column = op.emit.reshape(weight, (groups, 1))
    return op.emit.reshape(op.emit.broadcast(column, (groups, channels // groups)), (channels,))


def _instance_norm(op: Operation) -> Wire:
    wire = op.tensor(0)
    if len(wire.shape) < 2:
        raise damaged(f"{op.what} of {list(wire.shape)}")
    return applied(op, "group_norm", wire, op.tensor(1), op.tensor(2), groups=wire.shape[1], eps=_epsilon(op))


def _batch_norm(op: Operation) -> Wire:
    """At inference only: with the statistics it was given."""
    if op.integer("training_mode", 0) or op.result_of(1):
        raise Unmodelled("batch normalisation while training")
    wire, weight, bias, mean, variance = map(op.tensor, range(5))
    return applied(op, "batch_norm", wire, mean, variance, weight, bias, eps=_epsilon(op))


NORMALIZATION: Meanings = MappingProxyType({
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm,
    "BatchNormalization": _batch_norm,
})  # fmt: skip
