"""docs/formats.md says what the code does."""

import re
from pathlib import Path
from typing import Any

import pytest
from profiles import small_profile

from magneton.profile import archive, arrays, footer, header, schema, texts
from magneton.profile.store import save

TEXT = (Path(__file__).parents[3] / "docs" / "formats.md").read_text(encoding="utf-8")


def test_the_example_reads_a_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(small_profile(), tmp_path / "some.mgn")
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)
    assert list(names["operators"]["name"]) == ["aten.relu.default"] * 3


@pytest.mark.parametrize("table", schema.TABLES, ids=lambda table: table.name)
def test_every_column_is_described_in_order(table: schema.Table) -> None:
    after = TEXT.split(f"\n`{table.member}`", 1)[1].split("\n\n`", 1)[0]
    rows = [line.split("|")[1] for line in after.splitlines() if line.startswith("| `")]
    described = [name for row in rows for name in expanded(row)]
    assert described == [column.name for column in table.columns]


def expanded(cell: str) -> list[str]:
    """The columns that one cell names; "`cos_0` ... `cos_8`" stands for all between."""
    names: list[str] = []
    for part in cell.split(","):
        found = re.findall(r"`(\w+)`", part)
        if "..." in part:
            stem, last = found[1].rsplit("_", 1)
            names += [f"{stem}_{i}" for i in range(int(last) + 1)]
        else:
            names += found
    return names


def test_the_bounds_are_those_of_the_code() -> None:
    rows = [line for line in TEXT.split("Nothing is read before", 1)[1].splitlines() if line.startswith("|")]
    found = {name.strip(): bound for name, bound in (row.strip("|").split("|", 1) for row in rows)}
    mib = 1024 * 1024
    assert f"{archive.MAX_FILE_BYTES // mib} MiB" in found["the file"]
    assert str(archive.MAX_MEMBERS) in found["members; the directory that lists them"]
    assert f"{archive.MAX_TOTAL_BYTES // mib // 1024} GiB" in found["all members, uncompressed"]
    assert f"{header.MAX_BYTES // mib} MiB" in found["`profile.json`"]
    for bound in (
        f"{texts.MAX_BYTES // mib} MiB",
        f"{texts.MAX_TEXTS:,} lines",
        f"{texts.MAX_TEXT_LENGTH:,} char",
    ):
        assert bound in found["`strings.jsonl`"]
    assert f"{arrays.MAX_BYTES // mib} MiB" in found["an output; their number"]
    assert str(arrays.MAX_OUTPUTS) in found["an output; their number"]
    assert (
        f"{footer.MAX_ROW_GROUPS}; {footer.MAX_FOOTER_BYTES // 1024} KiB"
        in found["row groups; footer of a table"]
    )
    for name in ("operators", "operands", "values", "keys", "blocks", "replays", "scopes"):
        table = next(table for table in schema.TABLES if table.name == name)
        assert f"{table.max_rows:,}" in found[name]
    assert f"{schema.STACKS.max_rows:,}" in found["frames; stacks"]
    assert f"{schema.KERNELS.max_rows:,}; {schema.SAMPLES.max_rows:,}" in found["kernels; samples"]
