"""Operators that act on every element by itself. Operands broadcast as in NumPy and have one type."""

from types import MappingProxyType

from scalify.ir.graph import Attr, DType, TensorType
from scalify.ir.ops.dtypes import KIND_OF
from scalify.load.onnx.model import ELEMENT_TYPES, damaged
from scalify.load.onnx.operation import Meaning, Meanings, Operation, Unmodelled
from scalify.load.onnx.tensors import as_written
from scalify.load.torch_export.emit import Wire


def applied(op: Operation, name: str, *wires: Wire, dtype: DType | None = None, **attrs: Attr) -> Wire:
    """One elementwise op, whose result has the first operand's type unless another is said."""
    return op.emit.elementwise(name, *wires, dtype=dtype or wires[0].dtype, attrs=attrs)


def number(op: Operation, like: Wire, value: float) -> Wire:
    """A number of the type of another value."""
    return op.emit.constant(like.dtype, value)


def _unary(name: str) -> Meaning:
    return lambda op: applied(op, name, op.tensor())


def _binary(name: str, dtype: DType | None = None) -> Meaning:
    return lambda op: applied(op, name, op.tensor(0), op.tensor(1), dtype=dtype)


def _variadic(name: str) -> Meaning:
    def meaning(op: Operation) -> Wire:
        first, *rest = op.tensors()
        for wire in rest:
            first = applied(op, name, first, wire)
        return first

    return meaning


def _mean(op: Operation) -> Wire:
    total = _variadic("add")(op)
    assert isinstance(total, Wire)
    return applied(op, "div", total, number(op, total, len(op.inputs)))


def _div(op: Operation) -> Wire:
    """Of integers, towards zero."""
    left, right = op.tensor(0), op.tensor(1)
    if KIND_OF[left.dtype] != "int":
        return applied(op, "div", left, right)
    rest = applied(op, "rem", left, right)
    return applied(op, "floordiv", applied(op, "sub", left, rest), right)


def _mod(op: Operation) -> Wire:
    return applied(op, "rem" if op.integer("fmod", 0) else "mod", op.tensor(0), op.tensor(1))


def _shift(op: Operation) -> Wire:
    direction = op.text("direction", "")
    if direction not in ("LEFT", "RIGHT"):
        raise damaged(f"direction {direction!r} of {op.what}")
    return applied(op, f"shift_{direction.lower()}", op.tensor(0), op.tensor(1))


def cast(op: Operation, wire: Wire, dtype: DType) -> Wire:
    """The same values in another type. Narrow floats saturate: no function over the reals."""
    if wire.dtype != dtype and dtype.startswith("f8"):
        raise Unmodelled("a cast to 8 bits")
    return op.emit.cast(wire, dtype)


def _cast(op: Operation) -> Wire:
    code = op.integer("to")
    if code not in ELEMENT_TYPES:
        raise Unmodelled("a cast to a type that is not read")
    return cast(op, op.tensor(), ELEMENT_TYPES[code])


def _where(op: Operation) -> Wire:
    return applied(op, "where", op.tensor(0), op.tensor(1), op.tensor(2), dtype=op.tensor(1).dtype)


def _clip(op: Operation) -> Wire:
    wire = op.tensor()
    if op.has(1):
        wire = applied(op, "max", wire, op.scalar(1))
    return applied(op, "min", wire, op.scalar(2)) if op.has(2) else wire


def _prelu(op: Operation) -> Wire:
    wire, slope = op.tensor(0), op.tensor(1)
    below = applied(op, "lt", wire, number(op, wire, 0), dtype="bool")
    return applied(op, "where", below, applied(op, "mul", wire, slope), wire, dtype=wire.dtype)


def _leaky_relu(op: Operation) -> Wire:
    return applied(op, "leaky_relu", op.tensor(), slope=as_written(op.number("alpha", 0.01)))


def _gelu(op: Operation) -> Wire:
    kind = op.text("approximate", "none")
    if kind not in ("none", "tanh"):
        raise damaged(f"approximate {kind!r} of {op.what}")
    return applied(op, "gelu", op.tensor(), approximate=kind)


def _swish(op: Operation) -> Wire:
    wire, alpha = op.tensor(), as_written(op.number("alpha", 1.0))
    if alpha == 1:
        return applied(op, "silu", wire)
    return applied(op, "mul", wire, applied(op, "sigmoid", applied(op, "mul", wire, number(op, wire, alpha))))


def _hard_sigmoid(op: Operation) -> Wire:
    wire = op.tensor()
    return _bent(op, wire, as_written(op.number("alpha", 0.2)), as_written(op.number("beta", 0.5)))


def _bent(op: Operation, wire: Wire, alpha: float, beta: float) -> Wire:
    line = applied(op, "add", applied(op, "mul", wire, number(op, wire, alpha)), number(op, wire, beta))
    return applied(op, "clamp", number(op, wire, 0), line, number(op, wire, 1))


def _hard_swish(op: Operation) -> Wire:
    wire = op.tensor()
    return applied(op, "mul", wire, _bent(op, wire, 1 / 6, 0.5))


def _mish(op: Operation) -> Wire:
    wire = op.tensor()
    return applied(op, "mul", wire, applied(op, "tanh", applied(op, "softplus", wire)))


def _elu(op: Operation) -> Wire:
    wire, alpha = op.tensor(), as_written(op.number("alpha", 1.0))
    below = applied(op, "mul", applied(op, "expm1", wire), number(op, wire, alpha))
    positive = applied(op, "gt", wire, number(op, wire, 0), dtype="bool")
    return applied(op, "where", positive, wire, below, dtype=wire.dtype)


def _is_infinite(op: Operation) -> Wire:
    if not (op.integer("detect_negative", 1) and op.integer("detect_positive", 1)):
        raise Unmodelled("one of two infinities")
    wire = op.tensor()
    usual = applied(op, "is_finite", wire, dtype="bool")
    nothing = applied(op, "is_nan", wire, dtype="bool")
    return applied(op, "not", applied(op, "or", usual, nothing), dtype="bool")


def _dropout(op: Operation) -> tuple[Wire, ...]:
    """Nothing at inference. While training it draws: such a node is opaque."""
    if op.has(2) and op.known(2).any():
        raise Unmodelled("dropout while training")
    wire = op.tensor()
    if not op.result_of(1):
        return (wire,)
    return wire, op.emit.emit("constant", declared=TensorType("bool", wire.shape), attrs={"data": (True,)})


_SAME = {
    "Neg": "neg", "Abs": "abs", "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Reciprocal": "reciprocal",
    "Sin": "sin", "Cos": "cos", "Tan": "tan", "Tanh": "tanh", "Atan": "atan", "Sigmoid": "sigmoid",
    "Relu": "relu", "Erf": "erf", "Floor": "floor", "Ceil": "ceil", "Round": "round", "Sign": "sign",
    "Not": "not", "BitwiseNot": "not", "Softplus": "softplus",
}  # fmt: skip
_PAIRS = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Pow": "pow", "And": "and", "Or": "or", "Xor": "xor",
    "BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseXor": "xor",
}  # fmt: skip
_COMPARISONS = {
    "Equal": "eq", "Less": "lt", "LessOrEqual": "le", "Greater": "gt", "GreaterOrEqual": "ge",
}  # fmt: skip

ELEMENTWISE: Meanings = MappingProxyType({
    **{name: _unary(ours) for name, ours in _SAME.items()},
    **{name: _binary(ours) for name, ours in _PAIRS.items()},
    **{name: _binary(ours, "bool") for name, ours in _COMPARISONS.items()},
    "Identity": lambda op: op.tensor(),
    "IsNaN": lambda op: applied(op, "is_nan", op.tensor(), dtype="bool"),
    "IsInf": _is_infinite,
    "Max": _variadic("max"),
    "Min": _variadic("min"),
    "Sum": _variadic("add"),
    "Mean": _mean,
    "Div": _div,
    "Mod": _mod,
    "BitShift": _shift,
    "Cast": _cast,
    "CastLike": lambda op: cast(op, op.tensor(0), op.tensor(1).dtype),
    "Where": _where,
    "Clip": _clip,
    "PRelu": _prelu,
    "LeakyRelu": _leaky_relu,
    "Gelu": _gelu,
    "Swish": _swish,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
    "Mish": _mish,
    "Elu": _elu,
    "Dropout": _dropout,
})  # fmt: skip
