"""Opcodes that act on every element by itself."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from scalify.ir.graph import DType, NodeId, TensorType
from scalify.load.hlo.emit import Step, Value
from scalify.load.hlo.opaque import opaque

_UNARY = {
    "abs": "abs", "negate": "neg", "exponential": "exp", "exponential-minus-one": "expm1", "log": "log",
    "log-plus-one": "log1p", "sqrt": "sqrt", "rsqrt": "rsqrt", "sine": "sin", "cosine": "cos", "tan": "tan",
    "tanh": "tanh", "erf": "erf", "logistic": "sigmoid", "floor": "floor", "ceil": "ceil",
    "round-nearest-even": "round", "sign": "sign", "not": "not", "is-finite": "is_finite",
}  # fmt: skip
_BINARY = {
    "add": "add", "subtract": "sub", "multiply": "mul", "power": "pow", "maximum": "max", "minimum": "min",
    "remainder": "rem", "and": "and", "or": "or", "xor": "xor", "atan2": "atan2", "shift-left": "shift_left",
}  # fmt: skip
# On bools XLA's arithmetic is logic.
_BINARY_OF_BOOL = {"add": "or", "multiply": "and", "maximum": "or", "minimum": "and"}
_DIRECTIONS = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}
_UNSIGNED = frozenset({"u8", "u16", "u32", "u64"})
_SIGNED = frozenset({"i8", "i16", "i32", "i64"})
_COMPLEX = frozenset({"c64", "c128"})
# (exponent bits, mantissa bits) of the types that reduce-precision can go through.
_PRECISIONS: Mapping[tuple[int, int], DType] = MappingProxyType(
    {(8, 7): "bf16", (5, 10): "f16", (8, 23): "f32", (11, 52): "f64"}
)


def _unary(step: Step) -> Value:
    operands = step.arrays(1)
    return step.emit(_UNARY[step.instruction.opcode], operands)


def _binary(step: Step) -> Value:
    opcode, operands = step.instruction.opcode, step.arrays(2)
    if step.type.dtype == "bool":
        return step.emit(_BINARY_OF_BOOL.get(opcode, _BINARY[opcode]), operands)
    return step.emit(_BINARY[opcode], operands)


def _compare(step: Step) -> Value:
    op = _DIRECTIONS.get(step.instruction.direction)
    if op is None:
        raise step.wrong(f"compares in the direction {step.instruction.direction!r}")
    return step.emit(op, step.arrays(2))


def _divide(step: Step) -> Value:
    """Integers are divided towards zero: what is left of a division by remainder is exact."""
    dividend, divisor = step.arrays(2)
    if step.type.dtype in _UNSIGNED:
        return step.emit("floordiv", (dividend, divisor))
    if step.type.dtype in _SIGNED:
        rest = step.emit("rem", (dividend, divisor), step="rest")
        whole = step.emit("sub", (dividend, rest), step="whole")
        return step.emit("floordiv", (whole, divisor))
    return step.emit("div", (dividend, divisor))


def _shift_right(step: Step) -> Value:
    """Arithmetic of signed, logical of unsigned integers; the other two pairings have no op."""
    arithmetic = step.instruction.opcode == "shift-right-arithmetic"
    if step.type.dtype in (_SIGNED if arithmetic else _UNSIGNED):
        return step.emit("shift_right", step.arrays(2))
    return opaque(step)


def _select(step: Step) -> Value:
    return step.emit("where", step.arrays(3))


def _clamp(step: Step) -> Value:
    return step.emit("clamp", step.arrays(3))


def _convert(step: Step) -> Value:
    (operand,) = step.arrays(1)
    if step.type_of(operand).dtype in _COMPLEX and step.type.dtype not in _COMPLEX:
        return opaque(step)
    return step.cast(operand, step.type.dtype)


def _bitcast_convert(step: Step) -> Value:
    (operand,) = step.arrays(1)
    return operand if step.type_of(operand) == step.type else opaque(step)


def _reduce_precision(step: Step) -> Value:
    (operand,) = step.arrays(1)
    dtype = _PRECISIONS.get((step.instruction.exponent_bits, step.instruction.mantissa_bits))
    if dtype is None:
        return opaque(step)
    own = step.type_of(operand).dtype
    return operand if dtype == own else step.cast(step.cast(operand, dtype, "rounded"), own)


def _iota(step: Step) -> Value:
    if len(step.instruction.dimensions) != 1:
        raise step.wrong(f"counts along the dimensions {list(step.instruction.dimensions)}")
    return step.emit("iota", (), axis=step.instruction.dimensions[0])


def _random(step: Step) -> Value:
    """A draw of its own, scaled to what the operands ask for."""
    first, second = step.arrays(2)
    kind, type = step.instruction.distribution, step.type
    if type.dtype in _SIGNED | _UNSIGNED or kind not in {"uniform", "normal"}:
        return step.emit("random", (), key=step.id, kind=f"{kind} of {type.dtype}")
    draw = step.emit("random", (), step="draw", key=step.id, kind=kind)
    if kind == "normal":
        return _scaled(step, draw, second, first)
    width = step.emit("sub", (second, first), TensorType(type.dtype, ()), "width")
    return _scaled(step, draw, width, first)


def _scaled(step: Step, draw: NodeId, factor: NodeId, offset: NodeId) -> NodeId:
    scaled = step.emit("mul", (draw, factor), step="scaled")
    return step.emit("add", (scaled, offset))


HANDLERS: Mapping[str, Callable[[Step], Value]] = MappingProxyType(
    {
        **dict.fromkeys(_UNARY, _unary),
        **dict.fromkeys(_BINARY, _binary),
        "compare": _compare,
        "divide": _divide,
        "shift-right-arithmetic": _shift_right,
        "shift-right-logical": _shift_right,
        "select": _select,
        "clamp": _clamp,
        "convert": _convert,
        "bitcast-convert": _bitcast_convert,
        "reduce-precision": _reduce_precision,
        "iota": _iota,
        "rng": _random,
    }
)
