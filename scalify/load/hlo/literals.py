"""The elements of constants: from a message to bytes, and from bytes to numbers."""

import hashlib
from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalify.errors import InvalidGraph, UnsupportedFormat
from scalify.ir.graph import Attr
from scalify.load.hlo.program import Literal, Shape

MAX_DATA_ELEMENTS = 65_536

# Little-endian storage of one element.
STORAGE: Mapping[str, str] = MappingProxyType(
    {
        "pred": "|b1", "s8": "|i1", "s16": "<i2", "s32": "<i4", "s64": "<i8", "u8": "|u1", "u16": "<u2",
        "u32": "<u4", "u64": "<u8", "f16": "<f2", "f32": "<f4", "f64": "<f8", "bf16": "<u2", "c64": "<c8",
        "c128": "<c16", "f8e5m2": "|u1", "f8e4m3fn": "|u1",
    }
)  # fmt: skip

# Floats that are stored as codes, because NumPy has no such type.
_ENCODED = frozenset({"bf16", "f8e5m2", "f8e4m3fn"})
_TRUTHS = MappingProxyType({"true": 1, "false": 0, "1": 1, "0": 0})


def literal_bytes(message: Any, shape: Shape, where: str) -> bytes:
    """A literal's elements as little-endian bytes, row-major whatever the literal's own layout."""
    storage = STORAGE.get(shape.element)
    if storage is None:
        raise UnsupportedFormat(
            f"the constant {where} has element type {shape.element}, which is not read",
            hint="constants are arrays of numbers of 8 bits or more",
        )
    values = getattr(message, f"{shape.element}s")
    data = values if isinstance(values, bytes) else np.array(values, dtype=storage).tobytes()
    if len(data) != prod(shape.dims) * np.dtype(storage).itemsize:
        raise InvalidGraph(
            f"the constant {where} does not have as many elements as its shape says",
            hint="the file is damaged or without the values of large constants; write it again with them",
        )
    return _row_major(data, storage, shape, where)


def _row_major(data: bytes, storage: str, shape: Shape, where: str) -> bytes:
    order = shape.minor_to_major
    rank = len(shape.dims)
    if order is None or order == tuple(reversed(range(rank))):
        return data
    if sorted(order) != list(range(rank)):
        raise InvalidGraph(f"the constant {where} has an impossible layout", hint="the file is damaged")
    major_to_minor = tuple(reversed(order))
    stored = np.frombuffer(data, storage).reshape([shape.dims[axis] for axis in major_to_minor])
    return stored.transpose(np.argsort(major_to_minor)).tobytes()


def stored_bytes(numbers: Sequence[str], element: str) -> bytes:
    """Elements as they are printed, as little-endian bytes. ValueError or OverflowError if they are none."""
    storage = STORAGE[element]
    if element == "pred":
        return bytes(map(_truth, numbers))
    if np.dtype(storage).kind in "iu" and element not in _ENCODED:
        return np.array([int(number) for number in numbers], storage).tobytes()
    values = np.array([_real(number) for number in numbers], np.float64)
    if element in {"c64", "c128"}:
        return values.astype(storage.replace("c8", "f4").replace("c16", "f8")).tobytes()
    if element in _ENCODED:
        codes = np.arange(2 ** (8 * np.dtype(storage).itemsize), dtype=storage)
        with np.errstate(invalid="ignore"):
            meanings = _numbers(codes, element).astype(np.float64)
        return _nearest(values, codes, meanings).tobytes()
    with np.errstate(over="ignore"):
        return values.astype(storage).tobytes()


def _truth(number: str) -> int:
    if number not in _TRUTHS:
        raise ValueError(number)
    return _TRUTHS[number]


def _real(number: str) -> float:
    return float(number.partition("(")[0])


def _nearest(values: NDArray[Any], codes: NDArray[Any], meanings: NDArray[Any]) -> NDArray[Any]:
    """The code whose meaning is nearest to each value: a printed value may be rounded for people."""
    order = np.argsort(meanings, kind="stable")
    order = order[: np.count_nonzero(~np.isnan(meanings))]
    ordered = meanings[order]
    place = np.clip(np.searchsorted(ordered, values), 1, len(ordered) - 1)
    with np.errstate(invalid="ignore"):
        lower = np.abs(values - ordered[place - 1]) < np.abs(ordered[place] - values)
    exact = ordered[place - 1] == values
    chosen = codes[order[np.where(lower | exact, place - 1, place)]]
    nan = codes[np.isnan(meanings)][0] if np.isnan(meanings).any() else codes[0]
    return np.where(np.isnan(values), nan, chosen).astype(codes.dtype)


def constant_attrs(literal: Literal) -> dict[str, Attr]:
    """``data`` of a constant node (one element where all are equal), or ``digest`` of a large one."""
    element = literal.shape.element
    raw = np.frombuffer(literal.data, STORAGE[element])
    if raw.size > 1 and _all_same(raw):
        raw = raw[:1]
    if raw.size > MAX_DATA_ELEMENTS:
        return {"digest": hashlib.sha256(literal.data).hexdigest()}
    return {"data": tuple(_numbers(raw, element).tolist())}


def _all_same(raw: NDArray[Any]) -> bool:
    # By bits: NaNs compare unequal, and the two zeros equal.
    bits = raw.view(f"u{raw.itemsize}") if raw.itemsize <= 8 else raw.view("V16")
    return bool((bits == bits[0]).all())


def _numbers(raw: NDArray[Any], element: str) -> NDArray[Any]:
    match element:
        case "bf16":
            return (raw.astype("<u4") << 16).view("<f4")
        case "f8e5m2":
            return (raw.astype("<u2") << 8).view("<f2")
        case "f8e4m3fn":
            return _from_e4m3fn(raw)
        case "c64" | "c128":
            # Two numbers an element, real part first.
            return raw.view(f"<f{raw.itemsize // 2}")
        case _:
            return raw


def _from_e4m3fn(raw: NDArray[Any]) -> NDArray[Any]:
    sign = np.where(raw & 0x80, -1.0, 1.0)
    exponent = ((raw >> 3) & 0xF).astype(np.int32)
    mantissa = (raw & 7).astype(np.float64)
    size = np.where(exponent == 0, np.ldexp(mantissa, -9), np.ldexp(8 + mantissa, exponent - 10))
    return sign * np.where((raw & 0x7F) == 0x7F, np.nan, size)
