"""Functions of one operand, activations, selection by a condition, and casts."""

from types import MappingProxyType

from scalify.ir.graph import Attr
from scalify.load.torch_export.emit import Wire
from scalify.load.torch_export.meaning.arithmetic import operand, truth
from scalify.load.torch_export.operation import Meaning, Meanings, Operation, Unmodelled
from scalify.load.torch_export.scalars import kind


def unary(op: Operation, name: str, wire: Wire, **attrs: Attr) -> Wire:
    """One function applied, in the category of the result."""
    dtype = op.result.dtype
    source = wire if kind(wire.dtype) == kind(dtype) else op.emit.cast(wire, dtype)
    return op.emit.elementwise(name, source, dtype=dtype, attrs=attrs)


def _function(name: str) -> Meaning:
    return lambda op: unary(op, name, op.tensor("self"))


def _predicate(name: str) -> Meaning:
    return lambda op: op.emit.elementwise(name, op.tensor("self"), dtype="bool")


def _rounding(name: str) -> Meaning:
    """Integers are whole already."""

    def meaning(op: Operation) -> Wire:
        if op.integer("decimals", 0) != 0:
            raise Unmodelled("rounding to decimals")
        wire = op.tensor("self")
        return wire if kind(wire.dtype) == "int" else unary(op, name, wire)

    return meaning


def _gelu(op: Operation) -> Wire:
    return unary(op, "gelu", op.tensor("self"), approximate=op.text("approximate", "none"))


def _leaky_relu(op: Operation) -> Wire:
    return unary(op, "leaky_relu", op.tensor("self"), slope=float(op.number("negative_slope", 0.01)))


def _softplus(op: Operation) -> Wire:
    """PyTorch's is linear above the threshold: another function, unless that bounds rounding only."""
    if op.number("beta", 1) != 1 or op.number("threshold", 20) < 20:
        raise Unmodelled("softplus with a scale or a threshold")
    return unary(op, "softplus", op.tensor("self"))


def _logical_not(op: Operation) -> Wire:
    return op.emit.elementwise("not", truth(op, op.tensor("self")), dtype="bool")


def _is_infinite(op: Operation) -> Wire:
    wire = op.tensor("self")
    finite = op.emit.elementwise("is_finite", wire, dtype="bool")
    nan = op.emit.elementwise("is_nan", wire, dtype="bool")
    return op.emit.elementwise("not", op.emit.elementwise("or", finite, nan, dtype="bool"), dtype="bool")


def _where(op: Operation) -> Wire:
    dtype = op.result.dtype
    condition = truth(op, op.tensor("condition"))
    return op.emit.elementwise(
        "where", condition, operand(op, "self", dtype), operand(op, "other", dtype), dtype=dtype
    )


def _masked_fill(op: Operation) -> Wire:
    dtype = op.result.dtype
    mask = truth(op, op.tensor("mask"))
    value = operand(op, "value", dtype)
    return op.emit.elementwise("where", mask, value, op.tensor("self"), dtype=dtype)


def _clamp(low: str | None, high: str | None) -> Meaning:
    def meaning(op: Operation) -> Wire:
        dtype = op.result.dtype
        wire = operand(op, "self", dtype)
        if low is not None and op.has(low):
            wire = op.emit.elementwise("max", wire, operand(op, low, dtype), dtype=dtype)
        if high is not None and op.has(high):
            wire = op.emit.elementwise("min", wire, operand(op, high, dtype), dtype=dtype)
        return wire

    return meaning


def _hardtanh(low: float, high: float) -> Meaning:
    return lambda op: _between(op, op.number("min_val", low), op.number("max_val", high))


def _between(op: Operation, lowest: float, highest: float) -> Wire:
    dtype, wire = op.result.dtype, op.tensor("self")
    low, high = op.emit.constant(dtype, lowest), op.emit.constant(dtype, highest)
    return op.emit.elementwise("min", op.emit.elementwise("max", wire, low, dtype=dtype), high, dtype=dtype)


def _elu(op: Operation) -> Wire:
    if op.number("scale", 1) != 1 or op.number("input_scale", 1) != 1:
        raise Unmodelled("a scaled elu")
    dtype, wire = op.result.dtype, op.tensor("self")
    zero, alpha = op.emit.constant(dtype, 0), op.emit.constant(dtype, op.number("alpha", 1))
    positive = op.emit.elementwise("gt", wire, zero, dtype="bool")
    below = op.emit.elementwise("mul", alpha, op.emit.elementwise("expm1", wire, dtype=dtype), dtype=dtype)
    return op.emit.elementwise("where", positive, wire, below, dtype=dtype)


def _log_sigmoid(op: Operation) -> Wire:
    return unary(op, "log", unary(op, "sigmoid", op.tensor("self")))


def _glu(op: Operation) -> Wire:
    wire = op.tensor("self")
    axis = op.axis(op.integer("dim", -1), len(wire.shape))
    half = wire.shape[axis] // 2
    value, gate = op.emit.slice(wire, axis, 0, half), op.emit.slice(wire, axis, half, 2 * half)
    return op.emit.elementwise("mul", value, unary(op, "sigmoid", gate), dtype=op.result.dtype)


def _cast(op: Operation) -> Wire:
    """``to`` in all its forms: of what they change only the type matters."""
    wire = op.tensor("self")
    if kind(op.result.dtype) == "bool" and wire.dtype != "bool":
        return truth(op, wire)
    return op.emit.cast(wire, op.result.dtype)


def _copy(op: Operation) -> Wire:
    source = op.emit.cast(op.tensor("src"), op.result.dtype)
    return op.emit.broadcast(source, op.tensor("self").shape)


def _same(name: str = "self") -> Meaning:
    return lambda op: op.tensor(name)


def _dropout(op: Operation) -> Wire:
    """At inference, or with probability zero, nothing happens."""
    if op.flag("train", True) and op.number("p", 0.5) != 0:
        raise Unmodelled("dropout while training")
    return op.tensor("input")


# Called alike there and here.
_NAMES = (
    "neg", "abs", "exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "rsqrt", "reciprocal", "sin", "cos",
    "tan", "tanh", "atan", "sigmoid", "relu", "silu", "erf", "sign", "square",
)  # fmt: skip

ELEMENTWISE: Meanings = MappingProxyType({
    **{f"aten.{name}": _function(name) for name in _NAMES},
    "aten.negative": _function("neg"),
    "aten.sgn": _function("sign"),
    **{f"aten.{name}": _rounding(name) for name in ("floor", "ceil", "round", "trunc")},
    "aten.isfinite": _predicate("is_finite"),
    "aten.isnan": _predicate("is_nan"),
    "aten.isinf": _is_infinite,
    "aten.gelu": _gelu,
    "aten.leaky_relu": _leaky_relu,
    "aten.softplus": _softplus,
    "aten.hardtanh": _hardtanh(-1, 1),
    "aten.relu6": _hardtanh(0, 6),
    "aten.elu": _elu,
    "aten.glu": _glu,
    "aten.log_sigmoid": _log_sigmoid,
    "aten.bitwise_not": _function("not"),
    "aten.logical_not": _logical_not,
    "aten.where": _where,
    "aten.masked_fill": _masked_fill,
    "aten.clamp": _clamp("min", "max"),
    "aten.clip": _clamp("min", "max"),
    "aten.clamp_min": _clamp("min", None),
    "aten.clamp_max": _clamp(None, "max"),
    "aten.to": _cast,
    "aten._to_copy": _cast,
    "aten.type_as": _cast,
    "aten.copy": _copy,
    "aten.dropout": _dropout,
    "aten.feature_dropout": _dropout,
    "aten.native_dropout": lambda op: (_dropout(op), None),
    "aten.clone": _same(),
    "aten.detach": _same(),
    "aten.alias": _same(),
    "aten.contiguous": _same(),
    "aten.lift_fresh_copy": _same(),
    "aten.lift_fresh": _same(),
    "aten.detach_copy": _same(),
    "prims.convert_element_type": lambda op: op.emit.cast(op.tensor("a"), op.result.dtype),
})  # fmt: skip
