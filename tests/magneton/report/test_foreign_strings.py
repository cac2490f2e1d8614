"""A profile may say anything anywhere: nothing but visible characters of it reaches the terminal."""

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from profiles import small_profile
from typer.testing import CliRunner

from magneton.cli.app import app
from magneton.profile.model import Doubt, Profile
from magneton.profile.store import save

NASTY = (
    "x[bold red]M[/] [/] \x1b[31mred\x1b]8;;http://example.invalid\x07L\x9b31m\u202ertl\u2066\u200f\u2028"
    "\x85line\nnew\r\tt\x00\x7f\u200b"
)
FIXED = {  # fields that take no other than a few values, or that decide whether sides are comparable
    "phase", "phases", "role", "effect", "dtype", "pass_", "device_kind", "unit", "provenance", "grad_mode",
    "mode", "dataflow_mode", "config_hash", "session", "recorded_at", "attributes", "replay_cache", "moment",
}  # fmt: skip


def poisoned(part: Any) -> Any:
    """``part`` with every free string in it replaced."""
    if isinstance(part, str):
        return NASTY
    if isinstance(part, tuple):
        return tuple(poisoned(each) for each in cast(tuple[Any, ...], part))
    if isinstance(part, dict):
        known = cast(dict[str, Any], part)
        return {key + NASTY: NASTY if isinstance(value, str) else value for key, value in known.items()}
    if is_dataclass(part) and not isinstance(part, type):
        names = (field.name for field in fields(part) if field.name not in (*FIXED, "sketches"))
        return replace(part, **{name: poisoned(getattr(part, name)) for name in names})
    return part


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("profiles")
    plain: Profile = poisoned(small_profile(operators=3))
    plain = replace(plain, doubts=(Doubt(kind=NASTY, text=NASTY),))
    origin = replace(
        plain.origin, options={NASTY: "a" + NASTY}, flags={NASTY: "b" + NASTY}, driver="c" + NASTY
    )
    costly = replace(
        plain,
        origin=origin,
        blocks=tuple(replace(block, energy_j=9.0) for block in plain.blocks),
        replays=tuple(replace(reading, energy_j=3.0) for reading in plain.replays),
    )
    other = replace(plain, outputs={name: np.ones((2, 4), np.float32) for name in plain.outputs})
    model = replace(plain, origin=replace(plain.origin, model="d" + NASTY))
    for name, profile in {"plain": plain, "costly": costly, "other": other, "model": model}.items():
        save(profile, folder / f"{name}.mgn")
    return folder


@pytest.mark.parametrize("width", ["40", "80", "200"])
@pytest.mark.parametrize(
    ("command", "status"),
    [
        (("show", "plain.mgn"), 0),
        (("compare", "costly.mgn", "plain.mgn"), 0),
        (("compare", "plain.mgn", "other.mgn"), 4),
        (("compare", "plain.mgn", "model.mgn"), 4),
        (("match", "costly.mgn", "plain.mgn"), 4),
        (("match", "plain.mgn", "model.mgn"), 4),
        (("match", "costly.mgn", "plain.mgn", "--explain", "baseline:1"), 0),
        (("match", "costly.mgn", "plain.mgn", "--explain", "*"), 0),
        (("match", "costly.mgn", "plain.mgn", "--explain", NASTY), 0),
    ],
)
def test_only_what_can_be_seen_is_printed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: Sequence[str], status: int, width: str
) -> None:
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, list(command), env={"COLUMNS": width})

    assert result.exit_code == status, result.output
    printed = result.stdout + result.stderr
    assert "[bold red]M[/]" in printed.replace("\n", "")
    unseen = {c for c in printed if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")}
    assert unseen == set()


@pytest.mark.parametrize(
    "command",
    [
        ("show", "plain.mgn"),
        ("compare", "costly.mgn", "plain.mgn"),
        ("match", "costly.mgn", "plain.mgn"),
        ("match", "costly.mgn", "plain.mgn", "--explain", "candidate:2"),
    ],
)
def test_json_carries_the_strings_and_no_control_character(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: Sequence[str]
) -> None:
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, [*command, "--format", "json"])

    json.loads(result.stdout)
    assert json.dumps(NASTY)[1:-1] in result.stdout
    assert {
        c for c in result.stdout if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")
    } == set()
