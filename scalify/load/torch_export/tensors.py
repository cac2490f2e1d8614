"""Descriptions of tensors in an archive, and the values of the small ones.

A stored tensor is a raw file (its whole storage, little-endian) seen through sizes, strides and an offset.
"""

import hashlib
from dataclasses import dataclass
from typing import cast

import numpy as np

from scalify.errors import UnsupportedFormat
from scalify.ir.graph import TensorType
from scalify.load.torch_export.archive import Archive
from scalify.load.torch_export.fields import array, damaged, integer, mapping, only, text
from scalify.load.torch_export.scalars import SCALAR_TYPES, STORED, kind, widened

INLINE_ELEMENTS = 65_536
CONSTANT_BYTES_LIMIT = 2**30
_STRIDED = 7
_DEEPEST_RANK = 32
_MOST_ELEMENTS = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMeta:
    """Type and memory layout of a tensor."""

    type: TensorType
    strides: tuple[int, ...]
    offset: int

    @property
    def contiguous(self) -> bool:
        """Whether elements stand row-major without gaps."""
        expected = 1
        for size, stride in zip(reversed(self.type.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != expected:
                return False
            expected *= max(size, 1)
        return True


def tensor_meta(value: object, what: str) -> TensorMeta:
    """Read a ``TensorMeta`` record."""
    fields = mapping(value, what)
    code = integer(fields.get("dtype"), f"{what}'s dtype")
    if code not in SCALAR_TYPES:
        raise UnsupportedFormat(
            f"{what} has a data type (number {code}) that is not read", hint="export in another type"
        )
    if integer(fields.get("layout", _STRIDED), f"{what}'s layout") != _STRIDED:
        raise UnsupportedFormat(f"{what} is no dense tensor", hint="export a model with dense tensors")
    shape = _sizes(fields.get("sizes"), f"{what}'s shape")
    strides = _sizes(fields.get("strides"), f"{what}'s strides")
    if len(shape) != len(strides) or len(shape) > _DEEPEST_RANK:
        raise damaged(f"{what} has {len(shape)} sizes and {len(strides)} strides")
    offset = _size(fields.get("storage_offset", {"as_int": 0}), f"{what}'s offset")
    return TensorMeta(type=TensorType(SCALAR_TYPES[code], shape), strides=strides, offset=offset)


def _sizes(value: object, what: str) -> tuple[int, ...]:
    sizes = tuple(_plain_size(entry) or _size(entry, what) for entry in array(value, what))
    total = 1
    for size in sizes:
        total *= max(size, 1)
    if total > _MOST_ELEMENTS:
        raise damaged(f"{what} is beyond any memory")
    return sizes


def _plain_size(value: object) -> int:
    """A size as nearly all are written, without a word for what is wrong; 0 where it is not so."""
    size = cast("dict[str, object]", value).get("as_int") if type(value) is dict and len(value) == 1 else 0
    return size if type(size) is int and 0 < size < _MOST_ELEMENTS else 0


def _size(value: object, what: str) -> int:
    tag, size = only(value, what)
    if tag != "as_int":
        raise UnsupportedFormat(f"{what} is symbolic", hint="export with fixed shapes (no dynamic_shapes)")
    number = integer(size, what)
    if number < 0:
        raise damaged(f"{what} is negative")
    return number


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A constant's values where they are few, else what identifies them."""

    data: tuple[int | float | bool, ...] | None = None
    digest: str | None = None


def stored_constant(archive: Archive, payload: object, what: str) -> Stored:
    """The values of one entry of ``data/constants``. Fake and meta tensors have none."""
    fields = mapping(payload, what)
    if fields.get("use_pickle") or fields.get("tensor_meta") is None:
        return Stored()
    meta = tensor_meta(fields.get("tensor_meta"), what)
    member = f"data/constants/{text(fields.get('path_name'), what)}"
    raw = archive.read(member, CONSTANT_BYTES_LIMIT)
    if not raw or meta.type.dtype not in STORED:
        return Stored()
    return valued(_through_strides(raw, meta, what), meta.type)


def valued(values: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]", type_: TensorType) -> Stored:
    """The values as a constant's attributes."""
    if values.size > INLINE_ELEMENTS and not _uniform(values):
        return Stored(digest=hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest())
    if values.size and _uniform(values):
        values = values.reshape(-1)[:1]
    numbers = widened(values.reshape(-1), type_.dtype).tolist()
    convert = {"bool": bool, "int": int}.get(kind(type_.dtype), float)
    return Stored(data=tuple(convert(number) for number in numbers))


def _uniform(values: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]") -> bool:
    flat = values.reshape(-1)
    return bool(flat.size) and bool((flat == flat[0]).all())


def _through_strides(
    raw: bytes, meta: TensorMeta, what: str
) -> "np.ndarray[tuple[int, ...], np.dtype[np.generic]]":
    """Every element picked out of its storage, after checking that all lie inside."""
    storage = np.frombuffer(
        raw[: len(raw) // _width(meta) * _width(meta)], dtype=np.dtype(STORED[meta.type.dtype])
    )
    shape = meta.type.shape
    if 0 in shape:
        return np.zeros(shape, storage.dtype)
    last = meta.offset + sum((size - 1) * stride for size, stride in zip(shape, meta.strides, strict=True))
    if last >= storage.size:
        raise damaged(f"{what} reaches outside its storage")
    strides = tuple(stride * storage.itemsize for stride in meta.strides)
    window = np.lib.stride_tricks.as_strided(storage[meta.offset :], shape, strides, writeable=False)
    if window.size > max(storage.size, INLINE_ELEMENTS):
        raise damaged(f"{what} is larger than its storage")
    return window.copy()


def _width(meta: TensorMeta) -> int:
    return np.dtype(STORED[meta.type.dtype]).itemsize
