"""Ops that act on every element by itself; operands broadcast as in NumPy."""

from collections.abc import Mapping

from scalify.ir.graph import DType, TensorType
from scalify.ir.ops.attributes import AttrSpec
from scalify.ir.ops.dtypes import KIND_OF, DKind, as_float, promote
from scalify.ir.ops.meaning import elementwise as means
from scalify.ir.ops.shapes import broadcast
from scalify.ir.ops.spec import Call, Infer, Meaning, OpSpec, define, mistake


def _shape(call: Call) -> tuple[int, ...]:
    return broadcast(call, *(operand.shape for operand in call.operands))


def _refuse(call: Call, *kinds: DKind) -> None:
    for dtype in call.dtypes():
        if KIND_OF[dtype] in kinds:
            raise mistake(f"{call.op} has no meaning for {dtype}")


def _any(call: Call) -> TensorType:
    """Of bools, ``add`` is or and ``mul`` is and."""
    return TensorType(promote(*call.dtypes()), _shape(call))


def _number(call: Call) -> TensorType:
    _refuse(call, "bool")
    return _any(call)


def _ordered(call: Call) -> TensorType:
    _refuse(call, "complex")
    return _any(call)


def _ordered_number(call: Call) -> TensorType:
    _refuse(call, "bool", "complex")
    return _any(call)


def _real(call: Call) -> TensorType:
    """A function into the reals, of whatever it is given."""
    return TensorType(as_float(promote(*call.dtypes())), _shape(call))


def _ordered_real(call: Call) -> TensorType:
    _refuse(call, "complex")
    return _real(call)


def _magnitude(call: Call) -> TensorType:
    _refuse(call, "bool")
    dtype = call.operands[0].dtype
    plain: dict[DType, DType] = {"c64": "f32", "c128": "f64"}
    return TensorType(plain.get(dtype, dtype), call.shape())


def _truth(call: Call) -> TensorType:
    return TensorType("bool", _shape(call))


def _ordered_truth(call: Call) -> TensorType:
    _refuse(call, "complex")
    return _truth(call)


def _bits(call: Call) -> TensorType:
    """Logic of bools, or of the bits of integers."""
    _refuse(call, "float", "complex")
    return _any(call)


def _shift(call: Call) -> TensorType:
    _refuse(call, "bool", "float", "complex")
    return TensorType(call.operands[0].dtype, _shape(call))


def _cast(call: Call) -> TensorType:
    return TensorType(call.target().dtype, call.shape())


def _where(call: Call) -> TensorType:
    condition, *values = call.dtypes()
    if condition != "bool":
        raise mistake(f"the condition of where is bool, not {condition}")
    return TensorType(promote(*values), _shape(call))


def _all(meanings: Mapping[str, Meaning], arity: int, infer: Infer) -> tuple[OpSpec, ...]:
    return tuple(define(name, arity, infer, meaning) for name, meaning in meanings.items())


_APPROXIMATE = AttrSpec(kind="str", choices=("none", "tanh"), default="none")

ELEMENTWISE = (
    *_all(means.SAME, 1, _number),
    *_all(means.ORDERED, 1, _ordered_number),
    *_all(means.REAL, 1, _real),
    *_all(means.REAL_ONLY, 1, _ordered_real),
    *_all(means.TRUTH, 1, _truth),
    define("abs", 1, _magnitude, means.magnitude),
    define("not", 1, _bits, means.invert),
    define("gelu", 1, _ordered_real, means.gelu, approximate=_APPROXIMATE),
    define("leaky_relu", 1, _ordered_real, means.leaky_relu, slope=AttrSpec(kind="float", default=0.01)),
    define("cast", 1, _cast, means.cast),
    *_all(means.ARITHMETIC, 2, _any),
    *_all(means.NUMERIC, 2, _number),
    *_all(means.EXTREME, 2, _ordered),
    *_all(means.DIVISION, 2, _ordered_number),
    *_all(means.QUOTIENT, 2, _real),
    *_all(means.ANGLE, 2, _ordered_real),
    *_all(means.EQUALITY, 2, _truth),
    *_all(means.ORDER, 2, _ordered_truth),
    *_all(means.BITS, 2, _bits),
    *_all(means.SHIFTS, 2, _shift),
    define("where", 3, _where, means.where),
    define("clamp", 3, _ordered, means.clamp),
)
