"""Ops that act on every element by itself; operands broadcast as in NumPy."""

from scalify.ir.graph import DType, TensorType
from scalify.ir.ops.attributes import AttrSpec
from scalify.ir.ops.dtypes import KIND_OF, as_float, promote
from scalify.ir.ops.shapes import broadcast
from scalify.ir.ops.spec import Call, Infer, OpSpec, define, mistake


def _shape(call: Call) -> tuple[int, ...]:
    return broadcast(call, *(operand.shape for operand in call.operands))


def _same(call: Call) -> TensorType:
    return TensorType(promote(*call.dtypes()), _shape(call))


def _real(call: Call) -> TensorType:
    """A function into the reals, of whatever it is given."""
    return TensorType(as_float(promote(*call.dtypes())), _shape(call))


def _magnitude(call: Call) -> TensorType:
    dtype = call.operands[0].dtype
    plain: dict[DType, DType] = {"c64": "f32", "c128": "f64"}
    return TensorType(plain.get(dtype, dtype), call.shape())


def _truth(call: Call) -> TensorType:
    return TensorType("bool", _shape(call))


def _bits(call: Call) -> TensorType:
    """Logic of bools, or of the bits of integers."""
    dtype = promote(*call.dtypes())
    if KIND_OF[dtype] not in ("bool", "int"):
        raise mistake(f"{call.op} is of bools or integers, not {dtype}")
    return TensorType(dtype, _shape(call))


def _shift(call: Call) -> TensorType:
    for dtype in call.dtypes():
        if KIND_OF[dtype] != "int":
            raise mistake(f"{call.op} is of integers, not {dtype}")
    return TensorType(call.operands[0].dtype, _shape(call))


def _cast(call: Call) -> TensorType:
    return TensorType(call.target().dtype, call.shape())


def _where(call: Call) -> TensorType:
    condition, *values = call.dtypes()
    if condition != "bool":
        raise mistake(f"the condition of where is bool, not {condition}")
    return TensorType(promote(*values), _shape(call))


def _ops(names: str, arity: int, infer: Infer, **attrs: AttrSpec) -> tuple[OpSpec, ...]:
    return tuple(define(name, arity, infer, **attrs) for name in names.split())


ELEMENTWISE = (
    *_ops("neg floor ceil round trunc sign square relu", 1, _same),
    *_ops("abs", 1, _magnitude),
    *_ops("exp exp2 expm1 log log2 log1p sqrt rsqrt reciprocal sin cos tan tanh atan", 1, _real),
    *_ops("sigmoid silu erf softplus", 1, _real),
    *_ops("is_finite is_nan", 1, _truth),
    *_ops("not", 1, _bits),
    *_ops("gelu", 1, _real, approximate=AttrSpec(kind="str", choices=("none", "tanh"), default="none")),
    *_ops("leaky_relu", 1, _real, slope=AttrSpec(kind="float", default=0.01)),
    *_ops("cast", 1, _cast),
    *_ops("add sub mul pow max min floordiv mod rem", 2, _same),
    *_ops("div atan2", 2, _real),
    *_ops("eq ne lt le gt ge", 2, _truth),
    *_ops("and or xor", 2, _bits),
    *_ops("shift_left shift_right", 2, _shift),
    *_ops("where", 3, _where),
    *_ops("clamp", 3, _same),
)
