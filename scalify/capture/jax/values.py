"""Types and constants of JAX as HLO has them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import jax
import numpy as np

from scalify.errors import CaptureFailed
from scalify.load.hlo.program import Shape

_ELEMENTS: Mapping[str, str] = MappingProxyType(
    {
        "bool": "pred", "int8": "s8", "int16": "s16", "int32": "s32", "int64": "s64", "uint8": "u8",
        "uint16": "u16", "uint32": "u32", "uint64": "u64", "float16": "f16", "float32": "f32",
        "float64": "f64", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128",
        "float8_e5m2": "f8e5m2", "float8_e4m3fn": "f8e4m3fn",
    }
)  # fmt: skip


def element_of(dtype: Any) -> str:
    """HLO's name of a dtype."""
    element = _ELEMENTS.get(str(dtype))
    if element is None:
        raise CaptureFailed(
            f"the program computes with {dtype}, which scalify has no type for",
            hint="convert to a type of 8 bits or more; f8 means float8_e4m3fn or float8_e5m2",
        )
    return element


def shape_of(aval: Any) -> Shape:
    """The type of a variable. A random key is the words that it is made of."""
    dims = tuple(aval.shape)
    if not all(isinstance(size, int) for size in dims):
        raise CaptureFailed(f"{aval} has sizes that are not known", hint="capture with fixed shapes")
    if jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key):
        words = jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(dims, aval.dtype))
        return Shape("u32", tuple(words.shape))
    return Shape(element_of(aval.dtype), dims)


def bytes_of(value: Any, aval: Any) -> bytes:
    """A constant's elements, little-endian and row-major; one, where all are equal and there are many."""
    if jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key):
        array = np.asarray(jax.random.key_data(value))
    else:
        array = np.asarray(value, dtype=aval.dtype)
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    if array.size > 1:
        bits = array.reshape(-1).view(np.uint8).reshape(array.size, array.dtype.itemsize)
        array = array.reshape(-1)[:1] if (bits == bits[0]).all() else array
    return array.tobytes()
