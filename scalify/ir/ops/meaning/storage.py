"""How values are held while a graph is run, and what a declared dtype can hold of them.

Held: float64, int64, bool, complex128, by the kind of the dtype. u64 is held modulo 2**64 in an int64.
"""

import numpy as np

from scalify.ir.graph import DType
from scalify.ir.ops.dtypes import INTEGER_BITS, KIND_OF, DKind
from scalify.ir.ops.spec import Array

_HELD: dict[DKind, type[np.generic]] = {
    "float": np.float64,
    "int": np.int64,
    "bool": np.bool_,
    "complex": np.complex128,
}
# Bits of fraction, least exponent of a normal number, greatest finite number, what lies beyond it:
# f8e4m3 has no infinity and saturates, as PyTorch does.
_NARROW: dict[DType, tuple[int, int, float, float]] = {
    "bf16": (7, -126, (2 - 2.0**-7) * 2.0**127, np.inf),
    "f8e4m3": (3, -6, 448.0, 448.0),
    "f8e5m2": (2, -14, 57344.0, np.inf),
}
_NATIVE: dict[DType, type[np.generic]] = {"f32": np.float32, "f16": np.float16, "c64": np.complex64}


def stored(value: Array, dtype: DType) -> Array:
    """A value in the form in which its kind is held: float to int truncates, complex to a number loses its
    imaginary part, and only 0 is false."""
    kind = KIND_OF[dtype]
    held = _HELD[kind]
    if value.dtype == held:
        return value
    if value.dtype.kind == "c" and kind != "bool":
        value = np.real(value)
    if kind == "int" and value.dtype.kind == "f":
        value = np.trunc(value)
    return value.astype(held)


def wrapped(value: Array, dtype: DType) -> Array:
    """An integer modulo what its dtype can hold. Bools, and 64 bits, are left alone."""
    bits = INTEGER_BITS.get(dtype, 64)
    if bits == 64:
        return value
    lowest = -(1 << (bits - 1)) if dtype.startswith("i") else 0
    return (value - lowest) % (1 << bits) + lowest


def rounded(value: Array, dtype: DType) -> Array:
    """The nearest that the dtype can hold, ties to even, in the form in which its kind is held."""
    if dtype in _NATIVE:
        return value.astype(_NATIVE[dtype]).astype(_HELD[KIND_OF[dtype]])
    if dtype in _NARROW:
        return _narrowed(value, *_NARROW[dtype])
    return wrapped(value, dtype) if KIND_OF[dtype] == "int" else value


def _narrowed(value: Array, fraction: int, least: int, greatest: float, beyond: float) -> Array:
    _, exponent = np.frexp(value)
    unit = np.ldexp(1.0, np.maximum(exponent - 1, least) - fraction)
    result = np.rint(value / unit) * unit
    return np.where(np.abs(result) > greatest, np.copysign(beyond, value), result)
