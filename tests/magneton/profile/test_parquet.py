"""One table from an enemy: the footer is held against the schema before anything is decoded."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from archives import members_of, packed, parquet_bytes, refusal, table_of, with_column
from profiles import small_profile

from magneton.errors import InvalidProfile
from magneton.profile import schema
from magneton.profile.parquet import decode_table, encode_table
from magneton.profile.store import load


@pytest.fixture
def members(tmp_path: Path) -> dict[str, bytes]:
    return members_of(small_profile(), tmp_path)


@pytest.mark.parametrize(
    "options",
    [{"row_group_size": 2}, {"write_statistics": True}, {"data_page_size": 8}, {"version": "1.0"}, {}],
    ids=str,
)
def test_a_table_written_by_other_options_still_loads(
    options: dict[str, Any], members: dict[str, bytes], tmp_path: Path
) -> None:
    """Row groups, pages and statistics are the writer's choice."""
    table = parquet_bytes(table_of(members, "replays"), **options)
    path = tmp_path / "other.mgn"
    path.write_bytes(packed({**members, "replays.parquet": table}))
    assert load(path).replays == small_profile().replays


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"use_dictionary": True}, "'key_id' has a dictionary"),
        ({"data_page_version": "2.0"}, "no data page of version 1"),
        ({"column_encoding": {"energy_j": "BYTE_STREAM_SPLIT"}}, "a page is not plain"),
        ({"column_encoding": {"round": "DELTA_BINARY_PACKED"}}, "a page is not plain"),
        ({"compression": "zstd"}, "'key_id' is compressed"),
        ({"compression": {"energy_j": "gzip"}}, "'energy_j' is compressed"),
    ],
    ids=str,
)
def test_encodings_that_unfold_are_refused(
    options: dict[str, Any], message: str, members: dict[str, bytes], tmp_path: Path
) -> None:
    """So that a column needs no more memory than the archive's bounded reader gave out."""
    table = parquet_bytes(table_of(members, "replays"), **options)
    assert message in refusal(packed({**members, "replays.parquet": table}), tmp_path)


WRONG_TYPES = [
    pa.array([1, 2, 3], pa.int32()),
    pa.array([1, 2, 3], pa.uint64()),
    pa.array([1.0, 2.0, 3.0], pa.float64()),
    pa.array(["1", "2", "3"]),
    pa.array([b"1", b"2", b"3"]),
    pa.array([[1], [2], [3]]),
    pa.array([{"a": 1}, {"a": 2}, {"a": 3}]),
    pa.array([1, 2, 3], pa.timestamp("us")),
    pa.array([True, False, True]),
]


@pytest.mark.parametrize("array", WRONG_TYPES, ids=lambda array: str(array.type))
def test_a_column_of_another_type_is_named(array: Any, members: dict[str, bytes], tmp_path: Path) -> None:
    table = with_column(table_of(members, "operators"), "flops", array)
    message = refusal(packed({**members, "operators.parquet": parquet_bytes(table)}), tmp_path)
    assert message.startswith("operators.parquet ")
    assert "'flops'" in message or "does not have the columns" in message


def test_gaps_where_none_may_be_are_refused(members: dict[str, bytes], tmp_path: Path) -> None:
    table = table_of(members, "operators")
    field = pa.field("flops", pa.int64(), nullable=True)
    table = table.set_column(table.column_names.index("flops"), field, pa.array([1, None, 3], pa.int64()))
    message = refusal(packed({**members, "operators.parquet": parquet_bytes(table)}), tmp_path)
    assert "'flops'" in message


def test_missing_renamed_and_reordered_columns_are_refused(members: dict[str, bytes], tmp_path: Path) -> None:
    table = table_of(members, "samples")
    names = table.column_names
    for wrong in (
        table.drop_columns(["round"]),
        table.rename_columns({"round": "turn"}),
        table.select(names[::-1]),
        table.append_column("more", table.column("round")),
    ):
        message = refusal(packed({**members, "samples.parquet": parquet_bytes(wrong)}), tmp_path)
        assert "does not have the columns" in message


def test_arrow_and_pandas_schemas_are_refused_unread(members: dict[str, bytes], tmp_path: Path) -> None:
    table = table_of(members, "blocks")
    extension = with_column(
        table_of(members, "operators"),
        "flops",
        pa.ExtensionArray.from_storage(_Extension(), pa.array([1, 2, 3])),
    )
    for name, data in (
        ("blocks", parquet_bytes(table, store_schema=True)),
        ("blocks", parquet_bytes(table, metadata={"pandas": "{}"})),
        ("operators", parquet_bytes(extension, store_schema=True)),
    ):
        message = refusal(packed({**members, f"{name}.parquet": data}), tmp_path)
        assert "Arrow or pandas schema" in message


class _Extension(pa.ExtensionType):
    def __init__(self) -> None:
        super().__init__(pa.int64(), "magneton.test")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, _storage: Any, _serialized: bytes) -> "_Extension":
        raise AssertionError("an extension type from a file was looked up")


def test_other_metadata_is_refused(members: dict[str, bytes], tmp_path: Path) -> None:
    data = parquet_bytes(table_of(members, "blocks"), metadata={"note": "\x1b[31m"})
    message = refusal(packed({**members, "blocks.parquet": data}), tmp_path)
    assert "metadata of its own" in message


FOOTER_LIES = {  # the entry of column "round" in replays: its path, then codec, rows, sizes, offset
    "a codec that ends pyarrow's process": (b"\x15\x00\x16\x12", b"\x15\x20\x16\x12", "is compressed"),
    "more rows than its group": (b"\x15\x00\x16\x12", b"\x15\x00\x16\x14", "declares 10 rows"),
    "negative rows": (b"\x15\x00\x16\x12", b"\x15\x00\x16\x11", "declares -9 rows"),
    "another type for its rows": (b"\x15\x00\x16\x12", b"\x15\x00\x18\x00", "cannot be read"),
}


@pytest.mark.parametrize(("was", "lie", "message"), FOOTER_LIES.values(), ids=FOOTER_LIES.keys())
def test_a_footer_that_lies_is_refused(
    was: bytes, lie: bytes, message: str, members: dict[str, bytes], tmp_path: Path
) -> None:
    path = b"\x19\x18\x05round"
    table = members["replays.parquet"]
    assert table.count(path + was) == 1
    lying = table.replace(path + was, path + lie)
    assert message in refusal(packed({**members, "replays.parquet": lying}), tmp_path)


def test_too_many_rows_are_refused(members: dict[str, bytes], tmp_path: Path) -> None:
    rows = schema.BLOCKS.max_rows + 1
    one = table_of(members, "blocks").slice(0, 1)
    many = parquet_bytes(pa.concat_tables([one] * rows).combine_chunks())
    message = refusal(packed({**members, "blocks.parquet": many}), tmp_path)
    assert f"declares {rows} rows, at most {rows - 1}" in message


def test_too_many_row_groups_are_refused(members: dict[str, bytes], tmp_path: Path) -> None:
    many = pa.concat_tables([table_of(members, "blocks")] * 20)
    data = parquet_bytes(many, row_group_size=1)
    assert "120 row groups" in refusal(packed({**members, "blocks.parquet": data}), tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a Parquet file"),
        (b"PAR1" + b"x" * 20, "cut short"),
        (b"PAR1" + b"\0" * 20 + b"\xff\xff\xff\x7fPAR1", "a footer of 2147483647 bytes"),
        (b"PAR1" + b"\0" * 20 + b"\x14\x00\x00\x00PAR1", "cannot be read: "),
        (b"PARE" + b"\0" * 20 + b"\x14\x00\x00\x00PARE", "not a Parquet file"),
    ],
)
def test_what_is_no_parquet_is_refused(
    data: bytes, message: str, members: dict[str, bytes], tmp_path: Path
) -> None:
    found = refusal(packed({**members, "kernels.parquet": data}), tmp_path)
    assert found.startswith("kernels.parquet ")
    assert message in found


def test_more_rows_than_a_file_may_hold_are_not_written() -> None:
    with pytest.raises(InvalidProfile, match="500001 keys; a profile file holds at most 500000"):
        encode_table(schema.KEYS, {"skipped": [None] * 500_001})


def test_every_table_round_trips_when_empty() -> None:
    for table in schema.TABLES:
        data = encode_table(table, {column.name: [] for column in table.columns})
        assert all(len(cells) == 0 for cells in decode_table(table, data).values())
