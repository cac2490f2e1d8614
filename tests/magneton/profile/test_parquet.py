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


def test_a_table_written_by_other_options_still_loads(members: dict[str, bytes], tmp_path: Path) -> None:
    """Dictionaries, several row groups and statistics are another writer's choice."""
    table = parquet_bytes(
        table_of(members, "replays"), use_dictionary=True, row_group_size=2, write_statistics=True
    )
    path = tmp_path / "other.mgn"
    path.write_bytes(packed({**members, "replays.parquet": table}))
    assert load(path).replays == small_profile().replays


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


def test_compressed_columns_are_refused(members: dict[str, bytes], tmp_path: Path) -> None:
    """So that a column needs no more memory than the archive's bounded reader gave out."""
    data = parquet_bytes(table_of(members, "blocks"), compression="zstd")
    assert "compressed column" in refusal(packed({**members, "blocks.parquet": data}), tmp_path)


def test_too_many_rows_are_refused(members: dict[str, bytes], tmp_path: Path) -> None:
    rows = schema.BLOCKS.max_rows + 1
    one = table_of(members, "blocks").slice(0, 1)
    many = parquet_bytes(pa.concat_tables([one] * rows).combine_chunks(), use_dictionary=True)
    message = refusal(packed({**members, "blocks.parquet": many}), tmp_path)
    assert f"declares {rows} rows; at most {rows - 1}" in message


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
        (b"PAR1" + b"\0" * 20 + b"\x14\x00\x00\x00PAR1", "cannot be read as Parquet"),
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
