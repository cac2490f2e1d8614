"""Meanings of the ops that act on every element by itself."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from scalify.ir.ops.dtypes import INTEGER_BITS, KIND_OF
from scalify.ir.ops.meaning.storage import stored, wrapped
from scalify.ir.ops.spec import Array, Call, Meaning

Function = Callable[..., Array]


def plain(function: Function) -> Meaning:
    """The meaning of an op without attributes: a function of its operands."""

    def meaning(call: Call, values: Sequence[Array]) -> Array:
        return function(*values)

    return meaning


def real(function: Function) -> Meaning:
    """The same for a function of the reals: integers and bools become float64 first."""

    def meaning(call: Call, values: Sequence[Array]) -> Array:
        return function(
            *(value.astype(np.float64) if value.dtype.kind in "biu" else value for value in values)
        )

    return meaning


def erf(x: Array) -> Array:
    """Imported where it is needed: SciPy is slow to import and most runs only want types."""
    from scipy.special import erf as scipy_erf

    return np.asarray(scipy_erf(x))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), where exp may overflow to inf."""
    return 1.0 / (1.0 + np.exp(-x))


def silu(x: Array) -> Array:
    """x * sigmoid(x)."""
    return x * sigmoid(x)


def softplus(x: Array) -> Array:
    """log(1 + exp(x)), without overflow."""
    return np.logaddexp(x, 0.0)


def relu(x: Array) -> Array:
    """x where it is positive, else 0."""
    return np.maximum(x, 0)


def rsqrt(x: Array) -> Array:
    """1 / sqrt(x)."""
    return 1.0 / np.sqrt(x)


def reciprocal(x: Array) -> Array:
    """1 / x."""
    return 1.0 / x


def gelu(call: Call, values: Sequence[Array]) -> Array:
    """x * Phi(x), or its tanh approximation."""
    (x,) = values
    if call.text("approximate") == "tanh":
        return 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1.0 + erf(x / np.sqrt(2.0)))


def leaky_relu(call: Call, values: Sequence[Array]) -> Array:
    """x where it is positive, else slope * x."""
    (x,) = values
    return np.where(x > 0, x, call.number("slope") * x)


def cast(call: Call, values: Sequence[Array]) -> Array:
    """Exact into floats; float to integer truncates; integers wrap at the width they are cast to."""
    dtype = call.target().dtype
    value = stored(values[0], dtype)
    return wrapped(value, dtype) if KIND_OF[dtype] == "int" else value


def power(x: Array, exponent: Array) -> Array:
    """Of integers with a negative exponent: truncated, as a C compiler would."""
    if x.dtype.kind == "i" and exponent.dtype.kind == "i" and np.any(exponent < 0):
        return np.trunc(np.power(x.astype(np.float64), exponent)).astype(np.int64)
    return np.power(x, exponent)


def _clamp(low: Array, x: Array, high: Array) -> Array:
    """min(max(x, low), high): where low > high, high."""
    return np.minimum(np.maximum(x, low), high)


def invert(call: Call, values: Sequence[Array]) -> Array:
    """Logical of bools; the bits of an integer of the declared width."""
    return wrapped(np.invert(values[0]), call.operands[0].dtype)


def shift_left(call: Call, values: Sequence[Array]) -> Array:
    """Bits beyond the declared width are lost; shifting by the width or more gives 0."""
    x, count = values
    dtype = call.operands[0].dtype
    inside = (count >= 0) & (count < INTEGER_BITS[dtype])
    return wrapped(np.where(inside, np.left_shift(x, np.where(inside, count, 0)), 0), dtype)


def shift_right(call: Call, values: Sequence[Array]) -> Array:
    """Keeps the sign of a signed integer."""
    x, count = values
    return np.right_shift(x, np.clip(count, 0, 63))


def _plain(functions: Mapping[str, Function]) -> Mapping[str, Meaning]:
    return MappingProxyType({name: plain(function) for name, function in functions.items()})


def _real(functions: Mapping[str, Function]) -> Mapping[str, Meaning]:
    return MappingProxyType({name: real(function) for name, function in functions.items()})


SAME = _plain({"neg": np.negative, "square": np.square})
ORDERED = _plain(
    {
        "floor": np.floor,
        "ceil": np.ceil,
        "round": np.rint,
        "trunc": np.trunc,
        "sign": np.sign,
        "relu": relu,
    }
)
REAL = _real(
    {
        "exp": np.exp,
        "exp2": np.exp2,
        "log": np.log,
        "sqrt": np.sqrt,
        "rsqrt": rsqrt,
        "reciprocal": reciprocal,
        "sin": np.sin,
        "cos": np.cos,
        "tan": np.tan,
        "tanh": np.tanh,
    }
)
REAL_ONLY = _real(
    {
        "expm1": np.expm1,
        "log2": np.log2,
        "log1p": np.log1p,
        "atan": np.arctan,
        "sigmoid": sigmoid,
        "silu": silu,
        "erf": erf,
        "softplus": softplus,
    }
)
TRUTH = _plain({"is_finite": np.isfinite, "is_nan": np.isnan})

ARITHMETIC = _plain({"add": np.add, "mul": np.multiply})
NUMERIC = _plain({"sub": np.subtract, "pow": power})
EXTREME = _plain({"max": np.maximum, "min": np.minimum})
DIVISION = _plain({"floordiv": np.floor_divide, "mod": np.mod, "rem": np.fmod})
QUOTIENT = _real({"div": np.divide})
ANGLE = _real({"atan2": np.arctan2})
EQUALITY = _plain({"eq": np.equal, "ne": np.not_equal})
ORDER = _plain({"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal})
BITS = _plain({"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor})
SHIFTS: Mapping[str, Meaning] = MappingProxyType({"shift_left": shift_left, "shift_right": shift_right})

magnitude = plain(np.abs)
where = plain(np.where)
clamp = plain(_clamp)
