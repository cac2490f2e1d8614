"""The values of a stored tensor: from a message to bytes, to numbers, to a constant's attributes."""

import hashlib
import math
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from scalify.ir.graph import Attr, DType, TensorType
from scalify.ir.ops.dtypes import KIND_OF
from scalify.load.onnx.model import Array, Tensor, damaged

INLINE_ELEMENTS = 65_536
SMALLEST_DENOMINATORS = 1024
_STORED: dict[DType, str] = {
    "f64": "<f8", "f32": "<f4", "f16": "<f2", "bf16": "<u2", "f8e4m3": "u1", "f8e5m2": "u1", "i64": "<i8",
    "i32": "<i4", "i16": "<i2", "i8": "i1", "u64": "<u8", "u32": "<u4", "u16": "<u2", "u8": "u1", "bool": "?",
    "c64": "<c8", "c128": "<c16",
}  # fmt: skip
# What activations are written with: sqrt(2 / pi) of gelu, for one.
_NAMED: dict[float, float] = {
    float(np.float32(number)): number
    for number in (math.pi, math.tau, math.e, math.sqrt(math.pi), math.sqrt(2 / math.pi), 1 / math.pi,
                   2 / math.sqrt(math.pi), 1 / math.sqrt(2 * math.pi), math.log(2), 1 / math.log(2))
}  # fmt: skip


def raw_bytes(message: Any, type_: TensorType) -> bytes:
    """The elements of a tensor message as little-endian bytes, from whichever field holds them."""
    count = prod(type_.shape)
    storage = np.dtype(_STORED[type_.dtype])
    raw: bytes = message.raw_data
    if not raw and count:
        raw = _typed(message, type_.dtype)
    if len(raw) != count * storage.itemsize:
        raise damaged(f"tensor {message.name} has {len(raw)} bytes for {count} elements of {type_.dtype}")
    return raw


def _typed(message: Any, dtype: DType) -> bytes:
    """Elements in the fields of their own kind; narrow ones share the field of 32-bit integers."""
    match dtype:
        case "f32" | "c64":
            return np.array(message.float_data, "<f4").tobytes()
        case "f64" | "c128":
            return np.array(message.double_data, "<f8").tobytes()
        case "i64":
            return np.array(message.int64_data, "<i8").tobytes()
        case "u32" | "u64":
            return np.array(message.uint64_data, "<u8").astype(_STORED[dtype]).tobytes()
        case _:
            codes = np.array(message.int32_data, "<i4")
            storage = {"f16": "<u2", "bool": "u1"}.get(dtype, _STORED[dtype])
            return codes.astype(storage).tobytes()


def numbers(tensor: Tensor) -> Array | None:
    """The values, or None where they are not in the file or of a type that NumPy lacks."""
    if tensor.raw is None or tensor.type.dtype.startswith("f8"):
        return None
    values = np.frombuffer(tensor.raw, np.dtype(_STORED[tensor.type.dtype]))
    if tensor.type.dtype == "bf16":
        values = (values.astype("<u4") << 16).view("<f4")
    return values.reshape(tensor.type.shape)


def constant_attrs(values: Array, dtype: DType) -> dict[str, Attr]:
    """``data`` of a constant node (one element where all are equal), or ``digest`` of a large one."""
    flat = values.reshape(-1)
    if flat.size > 1 and bool((flat == flat[0]).all()):
        flat = flat[:1]
    if flat.size > INLINE_ELEMENTS:
        return {"digest": hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()}
    if KIND_OF[dtype] == "complex":
        return {"data": tuple(part for number in flat.tolist() for part in (number.real, number.imag))}
    convert = {"bool": bool, "int": int}.get(KIND_OF[dtype], float)
    data = tuple(convert(number) for number in flat.tolist())
    if dtype == "f32" and len(data) == 1:
        data = (as_written(data[0]),)
    return {"data": data}


def as_written(value: float) -> float:
    """The number that was written where a float of 32 bits stands: 0.1, 1e-5, 1 / 3, 64 ** -0.5.

    It rounds to that very float, so that no two floats are read as one number.
    """
    with np.errstate(over="ignore"):
        narrow = np.float32(value)
    if not np.isfinite(narrow) or narrow == 0:
        return value
    if abs(float(narrow)) in _NAMED:
        return math.copysign(_NAMED[abs(float(narrow))], value)
    shortest = float(str(narrow))
    if len(f"{shortest:.9g}".replace(".", "").split("e")[0].strip("-0")) <= 7:
        return shortest
    for degree in (1, 2, 4):
        power = Fraction(abs(value)) ** degree
        simple = power.limit_denominator(SMALLEST_DENOMINATORS)
        if not simple or simple.numerator > SMALLEST_DENOMINATORS:
            continue
        root = float(simple) ** (1 / degree)
        if np.float32(root) == abs(narrow):
            return root if value > 0 else -root
    return value
