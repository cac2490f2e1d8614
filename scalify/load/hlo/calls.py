"""Custom calls whose target is known, constants, tuples, and what has an effect beyond its result."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from scalify.ir.graph import NodeId, TensorType
from scalify.load.hlo.emit import Step, Value, paths
from scalify.load.hlo.literals import constant_attrs
from scalify.load.hlo.opaque import opaque
from scalify.load.hlo.reduction import constant_value

# Annotations for partitioners and memory planners; AwsNeuronTransferWithStaticRing copies a value.
_IDENTITIES = frozenset(
    {
        "AwsNeuronTransferWithStaticRing", "Sharding", "annotate_device_placement", "MoveToHost",
        "MoveToDevice", "xla.sdy.FuncResultSharding",
    }
)  # fmt: skip


def _custom_call(step: Step) -> Value:
    instruction = step.instruction
    if instruction.target in _IDENTITIES and len(step.operands) == 1:
        value = step.operands[0]
        if not isinstance(value, str) or step.type_of(value) == step.type:
            return value
    known = _TARGETS.get(instruction.target)
    if known is not None:
        return known(step)
    return _effect(step) if instruction.side_effect else opaque(step)


def _rms_norm(step: Step) -> Value:
    """AwsNeuronRmsNorm(x, weight, epsilon) over the dimension that its backend config names."""
    x, weight, epsilon = step.arrays(3)
    eps, axis = constant_value(step.emission, epsilon), step.instruction.backend_config
    if eps is None or not axis.isdigit() or len(axis) > 3:
        return opaque(step)
    shape = step.type_of(x).shape
    (over,) = step.axes((int(axis),), len(shape), "the normalised dimension")
    if step.type.shape != shape or step.type_of(weight).shape != (shape[over],):
        return opaque(step)
    return step.emit("rms_norm", (x, weight), axes=(over,), eps=float(eps))


_TARGETS: Mapping[str, Callable[[Step], Value]] = MappingProxyType({"AwsNeuronRmsNorm": _rms_norm})


def _effect(step: Step) -> Value:
    """What reaches outside the program becomes a result of it, so that nothing can drop or reorder it."""
    value = opaque(step, effect=True)
    made = [node for _, node in paths(value)]
    if not made:
        # A token is all the result it has: stand a truth value in for it.
        made = [_token(step)]
    step.emission.effects.append(made[0])
    return value


def _token(step: Step) -> NodeId:
    operands = tuple(node for value in step.operands for _, node in paths(value))
    return step.emit(
        "opaque",
        operands,
        TensorType("bool", ()),
        target=f"hlo.{step.instruction.opcode}",
        config=f"effect {len(step.emission.effects)}",
    )


def _constant(step: Step) -> Value:
    literal = step.instruction.literal
    if literal is None:
        raise step.wrong("has no value")
    if (literal.shape.element, literal.shape.dims) != (
        step.instruction.shape.element,
        step.instruction.shape.dims,
    ):
        raise step.wrong("has a value of another shape")
    return step.emit("constant", (), step.type, "", **constant_attrs(literal))


def _tuple(step: Step) -> Value:
    return step.operands


def _element(step: Step) -> Value:
    (whole,) = step.operands[:1] or (None,)
    index = step.instruction.tuple_index
    if not isinstance(whole, tuple) or not 0 <= index < len(whole):
        raise step.wrong(f"takes part {index} of what does not have it")
    return whole[index]


def _token_only(step: Step) -> Value:
    return None


def _batch_norm(step: Step) -> Value:
    """Operands: x, scale, offset, mean, variance; the op wants mean and variance first, features second."""
    x, scale, offset, mean, variance = step.arrays(5)
    rank = len(step.type_of(x).shape)
    (feature,) = step.axes((step.instruction.feature_index,), rank, "the feature dimension")
    if rank < 2:
        return opaque(step)
    rest = [axis for axis in range(rank) if axis != feature]
    order = (rest[0], feature, *rest[1:])
    x = step.transposed(x, order, "order")
    shape = step.type_of(x).shape
    normed = step.emit(
        "batch_norm",
        (x, mean, variance, scale, offset),
        TensorType(step.type.dtype, shape),
        "normed",
        eps=step.instruction.epsilon,
    )
    return step.transposed(normed, tuple(order.index(axis) for axis in range(rank)), "back")


HANDLERS: Mapping[str, Callable[[Step], Value]] = MappingProxyType(
    {
        "custom-call": _custom_call,
        "constant": _constant,
        "tuple": _tuple,
        "get-tuple-element": _element,
        "after-all": _token_only,
        "add-dependency": lambda step: step.operands[0] if step.operands else None,
        "infeed": _effect,
        "outfeed": _effect,
        "send": _effect,
        "send-done": _effect,
        "recv": _effect,
        "recv-done": _effect,
        "batch-norm-inference": _batch_norm,
    }
)
