"""One table to Parquet bytes and back, believing nothing the bytes say.

The footer is looked at before anything is decoded: names, physical types, nullability, rows, row groups
and compression must be what ``schema`` declares. No Arrow schema, pandas metadata or extension type is
read: a footer that carries any is refused before it is parsed.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from magneton.errors import InvalidProfile
from magneton.profile.damage import damaged
from magneton.profile.schema import Column, Kind, Table

Cells = Sequence[Any] | NDArray[Any]  # of one column, to write

MAX_FOOTER_BYTES = 256 * 1024
MAX_ROW_GROUPS = 64

_ARROW_TYPES = {
    Kind.TEXT: pa.int32(),
    Kind.INT32: pa.int32(),
    Kind.INT64: pa.int64(),
    Kind.FLOAT64: pa.float64(),
    Kind.BOOL: pa.bool_(),
}
_TAIL = struct.Struct("<I4s")  # length of the footer, magic
_MAGIC = b"PAR1"
_FOREIGN = (b"ARROW:schema", b"pandas")


def encode_table(table: Table, cells: Mapping[str, Cells]) -> bytes:
    """Uncompressed and plain: the archive around it compresses."""
    schema = pa.schema([pa.field(c.name, _ARROW_TYPES[c.kind], nullable=c.nullable) for c in table.columns])
    arrays = [pa.array(cells[c.name], type=_ARROW_TYPES[c.kind]) for c in table.columns]
    content = pa.Table.from_arrays(arrays, schema=schema)
    if content.num_rows > table.max_rows:
        raise InvalidProfile(
            f"{content.num_rows} {table.name}; a profile file holds at most {table.max_rows}",
            hint="record fewer steps",
        )
    sink = pa.BufferOutputStream()
    pq.write_table(
        content,
        sink,
        row_group_size=table.max_rows,
        version="2.6",
        compression="NONE",
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
    )
    return sink.getvalue().to_pybytes()


def decode_table(table: Table, data: bytes) -> Mapping[str, NDArray[Any] | list[Any]]:
    """Every declared column, of the declared type, at most ``max_rows`` long.

    An array; where the column may lack cells, a list with None for them.
    """
    _check_tail(table, data)
    try:
        # A hostile footer must not have the reader set aside more than a footer of ours can hold.
        file = pq.ParquetFile(
            pa.BufferReader(data), thrift_string_size_limit=65_536, thrift_container_size_limit=16_384
        )
        _check_footer(table, file.metadata)
        read = file.read(use_threads=False)
        read.validate()
        cells = {c.name: _cells(read.column(i), c) for i, c in enumerate(table.columns)}
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(table, f"cannot be read as Parquet ({type(error).__name__})") from error
    if read.num_rows != file.metadata.num_rows:
        raise _damaged(table, "has another number of rows than it declares")
    return cells


def _cells(column: Any, declared: Column) -> NDArray[Any] | list[Any]:
    return column.to_pylist() if declared.nullable else column.to_numpy()


def _check_tail(table: Table, data: bytes) -> None:
    if len(data) < 2 * len(_MAGIC) + _TAIL.size or not data.startswith(_MAGIC):
        raise _damaged(table, "is not a Parquet file")
    length, magic = _TAIL.unpack(data[-_TAIL.size :])
    if magic != _MAGIC:
        raise _damaged(table, "is not a Parquet file, or cut short")
    if length > min(MAX_FOOTER_BYTES, len(data) - _TAIL.size):
        raise _damaged(table, f"declares a footer of {length} bytes")
    footer = data[-_TAIL.size - length : -_TAIL.size]
    if any(name in footer for name in _FOREIGN):
        raise _damaged(table, "carries an Arrow or pandas schema, which is not allowed")


def _check_footer(table: Table, footer: Any) -> None:
    if footer.num_rows > table.max_rows or footer.num_rows < 0:
        raise _damaged(table, f"declares {footer.num_rows} rows; at most {table.max_rows} are allowed")
    if footer.num_row_groups > MAX_ROW_GROUPS:
        raise _damaged(
            table, f"declares {footer.num_row_groups} row groups; at most {MAX_ROW_GROUPS} are allowed"
        )
    if footer.metadata:
        raise _damaged(table, "carries metadata of its own, which is not allowed")
    schema = footer.schema
    names = [schema.column(i).path for i in range(footer.num_columns)]
    if names != [column.name for column in table.columns]:
        raise _damaged(table, "does not have the columns of schema version 1")
    for i, column in enumerate(table.columns):
        if not _fits(schema.column(i), column):
            raise _damaged(
                table, f"has a column {column.name!r} of another type than {column.kind.physical_type}"
            )
    groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
    if any(group.num_rows < 0 for group in groups) or sum(g.num_rows for g in groups) != footer.num_rows:
        raise _damaged(table, "has another number of rows than it declares")
    for group in groups:
        _check_chunks(table, group)


def _fits(found: Any, declared: Column) -> bool:
    return (
        found.physical_type == declared.kind.physical_type
        and found.logical_type.type == "NONE"
        and found.max_repetition_level == 0
        and found.max_definition_level == int(declared.nullable)
    )


def _check_chunks(table: Table, group: Any) -> None:
    for i, column in enumerate(table.columns):
        chunk = group.column(i)
        if chunk.compression != "UNCOMPRESSED":
            raise _damaged(table, f"has a compressed column {column.name!r}; the archive compresses")
        if chunk.num_values != group.num_rows:
            raise _damaged(table, f"has another number of rows in column {column.name!r} than it declares")
        # Levels take at most four bytes a row and page headers are small: more is no column of ours.
        allowed = 16 * group.num_rows + MAX_FOOTER_BYTES
        if not 0 <= chunk.total_uncompressed_size <= allowed:
            raise _damaged(table, f"declares {chunk.total_uncompressed_size} bytes in column {column.name!r}")


def _damaged(table: Table, what: str) -> InvalidProfile:
    return damaged(f"{table.member} {what}")
