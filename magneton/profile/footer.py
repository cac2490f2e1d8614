"""A Parquet footer, held against the table it must describe.

pyarrow is not asked: to look at a column's entry in a footer that no writer writes (an unknown compression
is enough) ends the whole process, which no ``except`` can catch (docs/decisions/0005-reading-parquet.md).
Here every field that decides how bytes are read must have the one value that a flat, plain, uncompressed
table of ours has.
"""

from dataclasses import dataclass
from typing import TypeVar

from magneton.profile.damage import damaged
from magneton.profile.schema import Column, Kind, Table
from magneton.profile.thrift import Malformed, Reader, Struct

MAX_FOOTER_BYTES = 128 * 1024
MAX_ROW_GROUPS = 16

_MAGIC = b"PAR1"
_LENGTH_BYTES = 4

# Parquet's own numbers for physical types, repetition and codec.
_TYPES = {Kind.BOOL: 0, Kind.TEXT: 1, Kind.INT32: 1, Kind.INT64: 2, Kind.FLOAT64: 5}
_REQUIRED, _OPTIONAL = 0, 1
_UNCOMPRESSED = 0

# Of a column's entry in the schema: type, repetition, name, field id. No converted or logical type.
_LEAF_FIELDS = frozenset({1, 3, 4, 9})

FieldT = TypeVar("FieldT", int, bytes, list[object], dict[int, object])


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroup:
    rows: int
    chunks: tuple[tuple[int, int], ...]  # of each column: where its pages start and end


def read_footer(table: Table, data: bytes) -> tuple[RowGroup, ...]:
    """Where the columns of ``table`` lie in ``data``; every chunk lies before the footer."""
    start = _footer_start(table, data)
    try:
        footer = Reader(data[start : -_LENGTH_BYTES - len(_MAGIC)]).struct()
        _check_schema(table, footer)
        groups = _field(footer, 4, list)
        if len(groups) > MAX_ROW_GROUPS:
            raise Malformed(f"it has {len(groups)} row groups, at most {MAX_ROW_GROUPS} are allowed")
        declared = _field(footer, 3, int)
        if not 0 <= declared <= table.max_rows:
            raise Malformed(f"it declares {declared} rows, at most {table.max_rows} are allowed")
        read = tuple(_row_group(table, _of(group, dict), start) for group in groups)
        if any(not 0 <= group.rows <= declared for group in read) or sum(g.rows for g in read) != declared:
            raise Malformed("its row groups have other rows than it declares")
    except Malformed as error:
        raise damaged(f"{table.member} cannot be read: {error}") from error
    return read


def _footer_start(table: Table, data: bytes) -> int:
    end = len(data) - _LENGTH_BYTES - len(_MAGIC)
    if end < len(_MAGIC) or not data.startswith(_MAGIC) or not data.endswith(_MAGIC):
        raise damaged(f"{table.member} is not a Parquet file, or cut short")
    length = int.from_bytes(data[end : end + _LENGTH_BYTES], "little")
    if length > min(MAX_FOOTER_BYTES, end - len(_MAGIC)):
        raise damaged(f"{table.member} declares a footer of {length} bytes")
    return end - length


def _check_schema(table: Table, footer: Struct) -> None:
    if 5 in footer:
        raise Malformed("it carries metadata of its own (an Arrow or pandas schema?), which is not allowed")
    if 8 in footer or 9 in footer:
        raise Malformed("it is encrypted")
    root, *leaves = [_of(element, dict) for element in _field(footer, 2, list)] or [{}]
    names = [_field(leaf, 4, bytes) for leaf in leaves]
    if _field(root, 5, int) != len(leaves) or names != [column.name.encode() for column in table.columns]:
        raise Malformed("it does not have the columns of schema version 1")
    for column, leaf in zip(table.columns, leaves, strict=True):
        _check_leaf(column, leaf)


def _check_leaf(column: Column, leaf: Struct) -> None:
    repetition = _OPTIONAL if column.nullable else _REQUIRED
    if leaf.keys() - _LEAF_FIELDS or leaf.get(1) != _TYPES[column.kind] or leaf.get(3) != repetition:
        gaps = "with" if column.nullable else "without"
        raise Malformed(f"its column {column.name!r} is not plain {column.kind.physical_type} {gaps} gaps")


def _row_group(table: Table, group: Struct, footer_start: int) -> RowGroup:
    chunks = [_of(chunk, dict) for chunk in _field(group, 1, list)]
    if len(chunks) != len(table.columns):
        raise Malformed("a row group has another number of columns")
    rows = _field(group, 3, int)
    return RowGroup(
        rows=rows,
        chunks=tuple(
            _chunk(column, chunk, rows, footer_start)
            for column, chunk in zip(table.columns, chunks, strict=True)
        ),
    )


def _chunk(column: Column, chunk: Struct, rows: int, footer_start: int) -> tuple[int, int]:
    where = f"its column {column.name!r}"
    if 1 in chunk or 8 in chunk or 9 in chunk:
        raise Malformed(f"{where} lies in another file or is encrypted")
    about = _field(chunk, 3, dict)
    if about.get(1) != _TYPES[column.kind] or about.get(3) != [column.name.encode()]:
        raise Malformed(f"{where} is another one inside a row group")
    if about.get(4) != _UNCOMPRESSED:
        raise Malformed(f"{where} is compressed; the archive compresses")
    if 11 in about:
        raise Malformed(f"{where} has a dictionary; plain values are allowed only")
    if about.get(5) != rows:
        raise Malformed(f"{where} declares {about.get(5)} rows, its row group {rows}")
    start, size = _field(about, 9, int), _field(about, 7, int)
    if start < 0 or size < 0 or start + size > footer_start or about.get(6) != size:
        raise Malformed(f"{where} declares {size} bytes at {start}")
    return start, start + size


def _field(fields: Struct, number: int, kind: type[FieldT]) -> FieldT:
    return _of(fields.get(number), kind)


def _of(value: object, kind: type[FieldT]) -> FieldT:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Malformed("a field is missing or of another type")
    return value
