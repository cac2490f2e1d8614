"""Pages as pyarrow writes them, and as an enemy might."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magneton.profile import schema
from magneton.profile.pages import read_chunk
from magneton.profile.parquet import decode_table, encode_table
from magneton.profile.schema import Column, Kind, Table
from magneton.profile.thrift import Malformed

ROW = Table(
    name="rows",
    columns=(
        Column(name="text", kind=Kind.TEXT),
        Column(name="flag", kind=Kind.BOOL),
        Column(name="gap_flag", kind=Kind.BOOL, nullable=True),
        Column(name="gap_int", kind=Kind.INT64, nullable=True),
        Column(name="gap_float", kind=Kind.FLOAT64, nullable=True),
    ),
    max_rows=100_000,
)
cells = st.tuples(
    st.integers(-(2**31), 2**31 - 1),
    st.booleans(),
    st.none() | st.booleans(),
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.floats(allow_nan=False),
)
# Runs and single rows: either way of writing gaps.
tables = st.lists(st.tuples(cells, st.integers(1, 40)), max_size=12).map(
    lambda runs: [row for row, count in runs for _ in range(count)]
)

GAPS = Column(name="gaps", kind=Kind.INT64, nullable=True)


@given(tables)
def test_what_pyarrow_writes_is_read(rows: list[tuple[Any, ...]]) -> None:
    columns = {column.name: [row[i] for row in rows] for i, column in enumerate(ROW.columns)}
    read = decode_table(ROW, encode_table(ROW, columns))
    assert {name: list(found) for name, found in read.items()} == columns


def test_long_columns_of_many_pages_are_read() -> None:
    energies = [None if i % 3 else float(i) for i in range(300_000)]
    cells = {column.name: np.arange(300_000) for column in schema.REPLAYS.columns} | {"energy_j": energies}
    read = decode_table(schema.REPLAYS, encode_table(schema.REPLAYS, cells))
    assert read["energy_j"] == energies
    np.testing.assert_array_equal(read["executions"], np.arange(300_000))


def page(rows: int, content: bytes, *, size: int | None = None) -> bytes:
    """A plain data page: header, then content."""

    def number(value: int) -> bytes:
        encoded, out = value << 1, bytearray()
        while encoded > 0x7F:
            out.append(encoded & 0x7F | 0x80)
            encoded >>= 7
        return bytes([*out, encoded])

    declared = number(len(content) if size is None else size)
    about = b"\x15" + number(rows) + b"\x15\x00\x15\x06\x15\x06\x00"
    return b"\x15\x00\x15" + declared + b"\x15" + declared + b"\x2c" + about + b"\x00" + content


def levels(*runs: bytes) -> bytes:
    joined = b"".join(runs)
    return len(joined).to_bytes(4, "little") + joined


def test_gaps_as_runs_and_as_bits() -> None:
    one = np.arange(5, dtype="<i8").tobytes()
    chunk = page(3, levels(b"\x06\x00")) + page(10, levels(b"\x04\x00", b"\x03\xb5") + one)
    values, present = read_chunk(GAPS, chunk, 13)
    assert values.tolist() == [0, 1, 2, 3, 4]
    assert present.tolist() == [False] * 5 + [True, False, True, False, True, True, False, True]


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        (b"", "lacks 8 rows"),
        (page(7, levels(b"\x0e\x00")), "lacks 1 rows"),
        (page(9, levels(b"\x12\x00")), "a page of 9 rows where 8 are left"),
        (page(0, levels()), "a page of 0 rows"),
        (page(8, b""), "levels reach beyond their page"),
        (page(8, b"\xff\xff\xff\xff"), "levels reach beyond their page"),
        (page(8, levels(b"\x00\x00" * 20)), "a run of 0 levels"),
        (page(8, levels(b"\xfe\xff\xff\xff\xff\x7f\x00")), "a run of 2199023255551 levels"),
        (page(8, levels(b"\xff\xff\xff\xff\xff\x7f")), "levels where 8 are left"),
        (page(8, levels(b"\x03")), "cut short"),
        (page(8, levels(b"\x10\x01")), "has 0 bytes for 8 values"),
        (page(8, levels(b"\x10\x00") + bytes(8)), "has 8 bytes for 0 values"),
        (page(8, levels(b"\x10\x00"), size=500), "a page reaches beyond its column"),
        (page(8, levels(b"\x10\x00")).replace(b"\x15\x00", b"\x15\x04", 1), "no data page of version 1"),
        (page(8, levels(b"\x10\x00"))[:5], "cut short"),
        (page(1, levels(b"\x02\x00")) * 8 + b"\x00", "no data page"),
    ],
)
def test_pages_that_lie_are_refused(chunk: bytes, message: str) -> None:
    with pytest.raises(Malformed, match=message):
        read_chunk(GAPS, chunk, 8)


def test_a_swarm_of_tiny_pages_is_refused() -> None:
    with pytest.raises(Malformed, match="a page of 1 rows"):
        read_chunk(GAPS, page(1, levels(b"\x02\x00")) * 5000, 5000)
