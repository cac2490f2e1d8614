"""Two-operand arithmetic and comparison, with PyTorch's promotion of types.

A number beside a tensor is weak: it takes the tensor's type unless it is of a higher category (bool <
int < float < complex). Results have the recorded type; operands of a lower category are cast first.
"""

from types import MappingProxyType

from scalify.ir.graph import DType
from scalify.load.torch_export.emit import Wire
from scalify.load.torch_export.fields import damaged
from scalify.load.torch_export.operation import Meaning, Meanings, Operation, Unmodelled
from scalify.load.torch_export.scalars import Kind, kind

_RANK: dict[Kind, int] = {"bool": 0, "int": 1, "float": 2, "complex": 3}


def operand(op: Operation, name: str, dtype: DType) -> Wire:
    """A tensor or number argument, in the category of ``dtype``."""
    if op.is_tensor(name):
        wire = op.tensor(name)
        return wire if kind(wire.dtype) == kind(dtype) else op.emit.cast(wire, dtype)
    if isinstance(op.call.arguments.get(name), complex):
        raise Unmodelled("a complex number")
    return op.emit.constant(dtype, op.number(name))


def common(op: Operation, *names: str) -> DType:
    """The type in which operands are compared: the widest category, of its first tensor."""
    dtypes: list[DType] = [op.tensor(name).dtype for name in names if op.is_tensor(name)]
    numbers: list[DType] = [_weak(op.number(name)) for name in names if not op.is_tensor(name)]
    if not dtypes:
        raise damaged(f"{op.call.name} has no tensor to compute with")
    # Ranked by category, then by width: the widest of the highest category.
    best: DType = max(dtypes, key=lambda dtype: (_RANK[kind(dtype)], _bits(dtype)))
    everything: list[DType] = [best, *numbers]
    return max(everything, key=lambda dtype: _RANK[kind(dtype)])


def _weak(number: int | float | bool) -> DType:
    if isinstance(number, bool):
        return "bool"
    return "i64" if isinstance(number, int) else "f32"


def _bits(dtype: DType) -> int:
    digits = "".join(character for character in dtype.split("e")[0] if character.isdigit())
    return int(digits or 0)


def _plain(name: str) -> Meaning:
    def meaning(op: Operation) -> Wire:
        dtype = op.result.dtype
        left, right = operand(op, "self", dtype), operand(op, "other", dtype)
        return op.emit.elementwise(name, left, right, dtype=dtype)

    return meaning


def _sum(name: str, reverse: bool = False) -> Meaning:
    """``self + alpha * other``; for booleans, or."""

    def meaning(op: Operation) -> Wire:
        dtype = op.result.dtype
        left, right = operand(op, "self", dtype), operand(op, "other", dtype)
        alpha = op.number("alpha", 1)
        if reverse:
            left, right = right, left
        if dtype == "bool":
            if name != "add" or alpha is False or alpha == 0:
                raise Unmodelled("arithmetic of booleans")
            return op.emit.elementwise("or", left, right, dtype=dtype)
        if alpha != 1:
            right = op.emit.elementwise("mul", right, op.emit.constant(dtype, alpha), dtype=dtype)
        return op.emit.elementwise(name, left, right, dtype=dtype)

    return meaning


def _mul(op: Operation) -> Wire:
    dtype = op.result.dtype
    name = "and" if dtype == "bool" else "mul"
    return op.emit.elementwise(name, operand(op, "self", dtype), operand(op, "other", dtype), dtype=dtype)


def _div(op: Operation) -> Wire:
    dtype, mode = op.result.dtype, op.text("rounding_mode", "")
    left, right = operand(op, "self", dtype), operand(op, "other", dtype)
    if mode == "floor":
        return op.emit.elementwise("floordiv", left, right, dtype=dtype)
    if mode == "trunc" and kind(dtype) == "int":
        # Rounding down, then up again by one where the quotient is negative and not whole.
        rest = op.emit.elementwise("rem", left, right, dtype=dtype)
        exact = op.emit.elementwise("sub", left, rest, dtype=dtype)
        return op.emit.elementwise("floordiv", exact, right, dtype=dtype)
    quotient = op.emit.elementwise("div", left, right, dtype=dtype)
    return op.emit.elementwise("trunc", quotient, dtype=dtype) if mode == "trunc" else quotient


def _pow(op: Operation) -> Wire:
    dtype = op.result.dtype
    return op.emit.elementwise("pow", operand(op, "self", dtype), operand(op, "exponent", dtype), dtype=dtype)


def _comparison(name: str) -> Meaning:
    def meaning(op: Operation) -> Wire:
        dtype = common(op, "self", "other")
        left, right = operand(op, "self", dtype), operand(op, "other", dtype)
        return op.emit.elementwise(name, left, right, dtype="bool")

    return meaning


def _logical(name: str) -> Meaning:
    def meaning(op: Operation) -> Wire:
        left, right = truth(op, op.tensor("self")), truth(op, op.tensor("other"))
        return op.emit.elementwise(name, left, right, dtype="bool")

    return meaning


def truth(op: Operation, wire: Wire) -> Wire:
    """Whether elements differ from zero."""
    if wire.dtype == "bool":
        return wire
    return op.emit.elementwise("ne", wire, op.emit.constant(wire.dtype, 0), dtype="bool")


def _scaled(name: str) -> Meaning:
    """``addcmul`` and ``addcdiv``: self + value * tensor1 op tensor2."""

    def meaning(op: Operation) -> Wire:
        dtype = op.result.dtype
        term = op.emit.elementwise(
            name, operand(op, "tensor1", dtype), operand(op, "tensor2", dtype), dtype=dtype
        )
        value = op.number("value", 1)
        if value != 1:
            term = op.emit.elementwise("mul", term, op.emit.constant(dtype, value), dtype=dtype)
        return op.emit.elementwise("add", operand(op, "self", dtype), term, dtype=dtype)

    return meaning


def _lerp(op: Operation) -> Wire:
    dtype = op.result.dtype
    start, end = operand(op, "self", dtype), operand(op, "end", dtype)
    step = op.emit.elementwise("sub", end, start, dtype=dtype)
    part = op.emit.elementwise("mul", step, operand(op, "weight", dtype), dtype=dtype)
    return op.emit.elementwise("add", start, part, dtype=dtype)


def _logaddexp(op: Operation) -> Wire:
    """log(exp(x) + exp(y)), kept in range by the larger of the two."""
    emit, dtype = op.emit, op.result.dtype
    x, y = operand(op, "self", dtype), operand(op, "other", dtype)
    most = emit.elementwise("max", x, y, dtype=dtype)
    powers = [
        emit.elementwise("exp", emit.elementwise("sub", one, most, dtype=dtype), dtype=dtype)
        for one in (x, y)
    ]
    total = emit.elementwise("log", emit.elementwise("add", *powers, dtype=dtype), dtype=dtype)
    return emit.elementwise("add", most, total, dtype=dtype)


ARITHMETIC: Meanings = MappingProxyType({
    "aten.add": _sum("add"),
    "aten.sub": _sum("sub"),
    "aten.subtract": _sum("sub"),
    "aten.rsub": _sum("sub", reverse=True),
    "aten.mul": _mul,
    "aten.multiply": _mul,
    "aten.div": _div,
    "aten.divide": _div,
    "aten.true_divide": _div,
    "aten.floor_divide": _plain("floordiv"),
    "aten.remainder": _plain("mod"),
    "aten.fmod": _plain("rem"),
    "aten.pow": _pow,
    "aten.maximum": _plain("max"),
    "aten.minimum": _plain("min"),
    "aten.max.other": _plain("max"),
    "aten.min.other": _plain("min"),
    "aten.atan2": _plain("atan2"),
    "aten.eq": _comparison("eq"),
    "aten.ne": _comparison("ne"),
    "aten.lt": _comparison("lt"),
    "aten.le": _comparison("le"),
    "aten.gt": _comparison("gt"),
    "aten.ge": _comparison("ge"),
    "aten.logical_and": _logical("and"),
    "aten.logical_or": _logical("or"),
    "aten.logical_xor": _logical("xor"),
    "aten.bitwise_and": _plain("and"),
    "aten.bitwise_or": _plain("or"),
    "aten.bitwise_xor": _plain("xor"),
    "aten.__and__": _plain("and"),
    "aten.__or__": _plain("or"),
    "aten.__xor__": _plain("xor"),
    "aten.bitwise_left_shift": _plain("shift_left"),
    "aten.bitwise_right_shift": _plain("shift_right"),
    "aten.__lshift__": _plain("shift_left"),
    "aten.__rshift__": _plain("shift_right"),
    "aten.addcmul": _scaled("mul"),
    "aten.addcdiv": _scaled("div"),
    "aten.lerp": _lerp,
    "aten.logaddexp": _logaddexp,
})  # fmt: skip
