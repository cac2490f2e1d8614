"""The pages of one column as values: plain, uncompressed data pages, nothing else.

A page holds as many values as its bytes have room for; gaps cost a bit or less each, and their number
is bounded by the rows, which ``footer`` has bounded. So no page unfolds into more than its column may take.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from magneton.profile.schema import Column, Kind
from magneton.profile.thrift import Malformed, Reader

Mask = NDArray[np.bool_]

_DTYPES = {
    Kind.TEXT: np.dtype("<i4"),
    Kind.INT32: np.dtype("<i4"),
    Kind.INT64: np.dtype("<i8"),
    Kind.FLOAT64: np.dtype("<f8"),
    Kind.BOOL: np.dtype(np.bool_),
}
_MAX_PAGES = 4096
_LENGTH_BYTES = 4
_DATA_PAGE = 0
_PLAIN, _RLE = 0, 3  # encodings, by Parquet's own numbers


def read_chunk(column: Column, chunk: bytes, rows: int) -> tuple[NDArray[Any], Mask]:
    """The values of ``rows`` rows without their gaps, and for each row whether it has a value."""
    values: list[NDArray[Any]] = [np.empty(0, dtype=_DTYPES[column.kind])]
    present: list[Mask] = [np.empty(0, dtype=np.bool_)]
    position, left = 0, rows
    while position < len(chunk):
        count, page, position = _next_page(chunk, position)
        if not 0 < count <= left or len(values) > _MAX_PAGES:
            raise Malformed(f"its column {column.name!r} has a page of {count} rows where {left} are left")
        defined, plain = _split(page, count) if column.nullable else (np.ones(count, dtype=np.bool_), page)
        values.append(_plain(column, plain, int(defined.sum())))
        present.append(defined)
        left -= count
    if left:
        raise Malformed(f"its column {column.name!r} lacks {left} rows")
    return np.concatenate(values), np.concatenate(present)


def _next_page(chunk: bytes, position: int) -> tuple[int, bytes, int]:
    """Rows of the page at ``position``, its content, and where the next one starts."""
    reader = Reader(chunk, position)
    header = reader.struct()
    about, size = header.get(5), header.get(3)
    if header.get(1) != _DATA_PAGE or not isinstance(about, dict):
        raise Malformed("a page is no data page of version 1")
    if about.get(2) != _PLAIN or about.get(3) != _RLE:
        raise Malformed("a page is not plain")
    count = about.get(1)
    if not isinstance(count, int) or not isinstance(size, int) or size < 0 or header.get(2) != size:
        raise Malformed("a page is compressed or has no size")
    end = reader.position + size
    if end > len(chunk):
        raise Malformed("a page reaches beyond its column")
    return count, chunk[reader.position : end], end


def _split(page: bytes, count: int) -> tuple[Mask, bytes]:
    """Which of ``count`` rows have a value, and the bytes of the values."""
    size = int.from_bytes(page[:_LENGTH_BYTES], "little")
    end = _LENGTH_BYTES + size
    if end > len(page):
        raise Malformed("levels reach beyond their page")
    return _levels(page[_LENGTH_BYTES:end], count), page[end:]


def _levels(data: bytes, count: int) -> Mask:
    """Definition levels 0 and 1: runs, and bits in groups of eight of which the last may be padded."""
    reader = Reader(data)
    pieces: list[Mask] = []
    left = count
    while left > 0:
        head = reader.varint()
        length = (head >> 1) * 8 if head & 1 else head >> 1
        if not 0 < length < left + 8:
            raise Malformed(f"a run of {length} levels where {left} are left")
        if head & 1:
            bits = np.frombuffer(reader.take(length // 8), dtype=np.uint8)
            pieces.append(np.unpackbits(bits, bitorder="little").astype(np.bool_)[:left])
        else:
            pieces.append(np.full(min(length, left), reader.take(1) != b"\0"))
        left -= length
    return np.concatenate(pieces)


def _plain(column: Column, data: bytes, count: int) -> NDArray[Any]:
    bits = column.kind is Kind.BOOL
    needed = -(-count // 8) if bits else count * _DTYPES[column.kind].itemsize
    if len(data) != needed:
        raise Malformed(f"its column {column.name!r} has {len(data)} bytes for {count} values")
    if bits:
        packed = np.frombuffer(data, dtype=np.uint8)
        return np.unpackbits(packed, count=count, bitorder="little").astype(np.bool_)
    return np.frombuffer(data, dtype=_DTYPES[column.kind])
