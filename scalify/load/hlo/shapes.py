"""Element types and shapes of HLO, and what of them the graph has types for."""

from collections.abc import Mapping
from math import prod
from types import MappingProxyType

from scalify.errors import InvalidGraph, UnsupportedFormat
from scalify.ir.graph import DType, TensorType
from scalify.load.hlo.program import Shape

MAX_RANK = 64
MAX_ELEMENTS = 2**62

ELEMENT_NAMES: Mapping[int, str] = MappingProxyType(
    {
        1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64",
        10: "f16", 11: "f32", 12: "f64", 13: "tuple", 14: "opaque", 15: "c64", 16: "bf16", 17: "token",
        18: "c128", 19: "f8e5m2", 20: "f8e4m3fn", 21: "s4", 22: "u4", 23: "f8e4m3b11fnuz", 24: "f8e5m2fnuz",
        25: "f8e4m3fnuz", 26: "s2", 27: "u2", 28: "f8e4m3", 29: "f8e3m4", 30: "s1", 31: "u1", 32: "f4e2m1fn",
        33: "f8e8m0fnu", 34: "buffer",
    }
)  # fmt: skip

DTYPES: Mapping[str, DType] = MappingProxyType(
    {
        "pred": "bool", "s8": "i8", "s16": "i16", "s32": "i32", "s64": "i64", "u8": "u8", "u16": "u16",
        "u32": "u32", "u64": "u64", "f16": "f16", "f32": "f32", "f64": "f64", "bf16": "bf16", "c64": "c64",
        "c128": "c128", "f8e5m2": "f8e5m2", "f8e4m3fn": "f8e4m3",
    }
)  # fmt: skip


def checked_dims(dims: tuple[int, ...], where: str) -> tuple[int, ...]:
    """The dimensions of an array, refused where no array could have them."""
    if len(dims) > MAX_RANK or (dims and min(dims) < 0) or prod(dims) > MAX_ELEMENTS:
        raise InvalidGraph(
            f"{where} has the impossible shape {list(dims[:8])}", hint="the file is damaged; write it again"
        )
    return dims


def tensor_type(shape: Shape, where: str) -> TensorType:
    """The type of a value that is one array."""
    dtype = DTYPES.get(shape.element)
    if dtype is None:
        raise UnsupportedFormat(
            f"{where} has element type {shape.element}, which scalify has no type for",
            hint="convert to a type of 8 bits or more; f8 means f8e4m3fn or f8e5m2",
        )
    return TensorType(dtype, shape.dims)


def is_array(shape: Shape) -> bool:
    """Not a tuple, a token or an opaque handle."""
    return shape.element not in {"tuple", "token", "opaque", "buffer"}
