"""One table to Parquet bytes and back.

pyarrow writes; what is read comes from anywhere, and is read here without it (see ``footer``): flat,
plain and uncompressed columns need no more than ``footer`` and ``pages``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from magneton.errors import InvalidProfile
from magneton.profile.damage import damaged
from magneton.profile.footer import RowGroup, read_footer
from magneton.profile.pages import read_chunk
from magneton.profile.schema import Column, Kind, Table
from magneton.profile.thrift import Malformed

Cells = Sequence[Any] | NDArray[Any]  # of one column

_ARROW_TYPES = {
    Kind.TEXT: pa.int32(),
    Kind.INT32: pa.int32(),
    Kind.INT64: pa.int64(),
    Kind.FLOAT64: pa.float64(),
    Kind.BOOL: pa.bool_(),
}


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
        data_page_version="1.0",
        compression="NONE",
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
    )
    return sink.getvalue().to_pybytes()


def decode_table(table: Table, data: bytes) -> Mapping[str, NDArray[Any] | list[Any]]:
    """Every declared column, of the declared type, at most ``max_rows`` long.

    An array; where the column may have gaps, a list with None for them.
    """
    groups = read_footer(table, data)
    try:
        return {column.name: _column(column, i, data, groups) for i, column in enumerate(table.columns)}
    except Malformed as error:
        raise damaged(f"{table.member} cannot be read: {error}") from error


def _column(column: Column, index: int, data: bytes, groups: Sequence[RowGroup]) -> NDArray[Any] | list[Any]:
    parts = [read_chunk(column, data[slice(*group.chunks[index])], group.rows) for group in groups]
    none = read_chunk(column, b"", 0)
    values = np.concatenate([part for part, _ in [none, *parts]])
    if not column.nullable:
        return values
    present = np.concatenate([mask for _, mask in [none, *parts]])
    following = iter(values.tolist())
    return [next(following) if there else None for there in present.tolist()]
