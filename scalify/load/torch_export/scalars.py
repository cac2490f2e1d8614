"""The numbers by which PyTorch's export format names its data types."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import numpy as np

from scalify.ir.graph import DType

SCALAR_TYPES: Mapping[int, DType] = MappingProxyType({
    1: "u8", 2: "i8", 3: "i16", 4: "i32", 5: "i64", 6: "f16", 7: "f32", 8: "f64", 10: "c64", 11: "c128",
    12: "bool", 13: "bf16", 28: "u16", 29: "f8e4m3", 30: "f8e5m2", 34: "u32", 35: "u64",
})  # fmt: skip

# How the bytes of a stored tensor read; the narrow floats have no NumPy type of their own.
STORED: Mapping[DType, str] = MappingProxyType({
    "u8": "u1", "i8": "i1", "i16": "<i2", "i32": "<i4", "i64": "<i8", "f16": "<f2", "f32": "<f4",
    "f64": "<f8", "bool": "?", "u16": "<u2", "u32": "<u4", "u64": "<u8", "bf16": "<u2",
})  # fmt: skip

Kind = Literal["bool", "int", "float", "complex"]


def kind(dtype: DType) -> Kind:
    """The category that PyTorch's type promotion goes by."""
    if dtype == "bool":
        return "bool"
    if dtype[0] in "iu":
        return "int"
    return "complex" if dtype[0] == "c" else "float"


def widened(
    raw: np.ndarray[tuple[int, ...], np.dtype[np.generic]], dtype: DType
) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """Values as NumPy knows them: a bf16 is the upper half of a float."""
    if dtype != "bf16":
        return raw
    return (raw.astype(np.uint32) << 16).view(np.float32)
