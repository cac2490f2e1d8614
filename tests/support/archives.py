"""Take a profile file apart, change it, and put it together again so that only the change is wrong."""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from magneton.errors import InvalidProfile
from magneton.profile.archive import encode_archive
from magneton.profile.model import Profile
from magneton.profile.store import load, save

ArrowTable = Any  # pyarrow has no types


def members_of(profile: Profile, folder: Path) -> dict[str, bytes]:
    path = folder / "whole.mgn"
    save(profile, path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def header_of(members: Mapping[str, bytes]) -> dict[str, Any]:
    return json.loads(members["profile.json"])


def packed(members: Mapping[str, bytes]) -> bytes:
    """The archive of ``members``; profile.json lists the sizes they have, checksums are right."""
    header = header_of(members)
    header["members"] = {name: len(data) for name, data in members.items() if name != "profile.json"}
    return encode_archive({**members, "profile.json": json.dumps(header).encode()})


def with_header(members: Mapping[str, bytes], /, **changes: Any) -> bytes:
    """The archive of ``members`` with fields of profile.json replaced."""
    header = header_of(members) | changes
    return encode_archive({**members, "profile.json": json.dumps(header).encode()})


def refusal(data: bytes, folder: Path) -> str:
    """What ``load`` says about a file of these bytes."""
    path = folder / "hostile.mgn"
    path.write_bytes(data)
    with pytest.raises(InvalidProfile) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert message.isprintable(), "one line, without control characters"
    assert caught.value.hint
    return message.removeprefix(f"{path}: ")


def table_of(members: Mapping[str, bytes], name: str) -> ArrowTable:
    return pq.read_table(io.BytesIO(members[f"{name}.parquet"]))


def parquet_bytes(table: ArrowTable, *, metadata: Mapping[str, str] | None = None, **options: Any) -> bytes:
    """``table`` as magneton writes tables, but for ``options`` and ``metadata`` in the footer."""
    sink = io.BytesIO()
    row_group_size = options.pop("row_group_size", None)
    usual: dict[str, Any] = {
        "compression": "NONE",
        "use_dictionary": False,
        "write_statistics": False,
        "store_schema": False,
    }
    with pq.ParquetWriter(sink, table.schema, **(usual | options)) as writer:
        writer.write_table(table, row_group_size)
        if metadata is not None:
            writer.add_key_value_metadata(metadata)
    return sink.getvalue()


def with_column(table: ArrowTable, name: str, array: Any) -> ArrowTable:
    """``table`` with one column replaced, of whatever type."""
    index = table.column_names.index(name)
    field = table.schema.field(name).with_type(array.type)
    return table.set_column(index, field, array)
