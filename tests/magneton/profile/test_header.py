"""profile.json from an enemy, or from a newer release."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from archives import header_of, members_of, refusal, with_header
from modelled_work import copy, profile_of
from profiles import small_profile

from magneton.errors import InvalidProfile
from magneton.meters.devices import read_model
from magneton.profile.archive import encode_archive
from magneton.profile.header import MAX_BYTES, SCHEMA_VERSION
from magneton.profile.sketches import SKETCH_VERSION
from magneton.profile.store import load


@pytest.fixture
def members(tmp_path: Path) -> dict[str, bytes]:
    return members_of(small_profile(), tmp_path)


@pytest.mark.parametrize(
    ("field", "newer"), [("version", SCHEMA_VERSION + 1), ("sketch_version", SKETCH_VERSION + 1)]
)
def test_a_newer_version_is_refused_with_what_to_do(
    field: str, newer: int, members: dict[str, bytes], tmp_path: Path
) -> None:
    """Before anything that this release would not understand is looked at."""
    path = tmp_path / "newer.mgn"
    path.write_bytes(with_header({**members, "novelty.parquet": b""}, **{field: newer}, novelty={}))
    with pytest.raises(InvalidProfile, match=rf"made by a newer magneton: \w+ version {newer}") as caught:
        load(path)
    assert "upgrade" in caught.value.hint


@pytest.mark.parametrize("version", [0, -1, 1.0, "1", None, True, 2**70])
def test_a_version_that_never_was_is_refused(
    version: object, members: dict[str, bytes], tmp_path: Path
) -> None:
    assert "version" in refusal(with_header(members, version=version), tmp_path)


def test_another_schema_is_refused(members: dict[str, bytes], tmp_path: Path) -> None:
    assert "not of schema" in refusal(with_header(members, schema="something-else"), tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"", "not valid JSON"),
        (b"\xff\xfe{}", "not valid JSON"),
        (b'{"schema": "\\ud800"}', "not valid JSON"),
        (b'{"schema": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b'{"version": NaN}', "the number 'NaN'"),
        (b'{"version": -Infinity}', "the number '-Infinity'"),
        (b'{"version": 1, "version": 1}', "a field twice"),
        (b"[]", "is no object"),
        (b"null", "is no object"),
        (b'"text"', "is no object"),
        (b" " * (MAX_BYTES + 1), "at most"),
    ],
    ids=range(13),
)
def test_what_is_no_header_is_refused(
    text: bytes, message: str, members: dict[str, bytes], tmp_path: Path
) -> None:
    found = refusal(encode_archive({**members, "profile.json": text}), tmp_path)
    assert message in found
    assert "profile.json" in found


def changed(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Set the field at ``path`` ("origin.meter.unit")."""

    def change(header: dict[str, Any]) -> None:
        *above, last = path.split(".")
        place = header
        for name in above:
            place = place[name]
        place[last] = value

    return change


def removed(path: str) -> Callable[[dict[str, Any]], None]:
    def change(header: dict[str, Any]) -> None:
        *above, last = path.split(".")
        place = header
        for name in above:
            place = place[name]
        del place[last]

    return change


WRONG: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (changed("novelty", 1), "unknown field 'novelty'"),
    (changed("origin.novelty", 1), "origin has an unknown field"),
    (changed("origin.workload.novelty", 1), "workload has an unknown field"),
    (changed("\x1b[31m", 1), r"unknown field '\x1b[31m'"),
    (removed("origin"), "lacks the field 'origin'"),
    (removed("origin.meter.unit"), "lacks the field 'unit'"),
    (changed("origin", []), "origin is no object"),
    (changed("origin.system", 7), "system is no string"),
    (changed("origin.options", {"a": 1}), "options is no string"),
    (changed("origin.flags", ["a"]), "flags is no object"),
    (changed("origin.device_kind", "toaster"), "device_kind is 'toaster'"),
    (changed("origin.mode", "\x1b[2J"), r"mode is '\x1b[2J'"),
    (changed("origin.meter.unit", "kWh"), "unit is 'kWh'"),
    (changed("origin.meter.provenance", "guessed"), "provenance is 'guessed'"),
    (changed("origin.meter.scale_low", 1e400), "scale_low"),
    (changed("origin.meter.scale_low", "1"), "scale_low is no number"),
    (changed("origin.meter.scale_low", True), "scale_low is no"),
    (changed("origin.meter.scale_low", 2.0), "scale lies between"),
    (changed("origin.workload.dtype", "float8"), "dtype is 'float8'"),
    (changed("origin.workload.batch", 0), "batch 0"),
    (changed("origin.workload.batch", 2**80), "batch is no whole number"),
    (changed("origin.workload.phases", []), "phases"),
    (changed("origin.workload.phases", ["prefill", "prefill"]), "phases"),
    (changed("origin.threads", -4), "threads -4"),
    (changed("doubts", [{"kind": "x"}]), "doubts[0] lacks the field 'text'"),
    (changed("doubts", {}), "doubts is no list"),
    (changed("stack_count", -1), "stack_count is -1"),
    (changed("stack_count", 2**62), "stacks declared"),
    (changed("outputs", ["prefill.logits", "prefill.logits"]), "an output twice"),
    (changed("outputs", []), "unknown member 'outputs/0.npy'"),
    (changed("outputs", [""]), "an output without a name"),
    (changed("outputs", [f"o{i}" for i in range(100_000)]), "names 100000 outputs"),
    (changed("outputs", ["prefill.logits", "more"]), "lacks the member 'outputs/1.npy'"),
    (changed("members", {}), "says otherwise"),
    (changed("members", {"a": -1}), "members is -1"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_field_is_named(
    change: Callable[[dict[str, Any]], None], message: str, members: dict[str, bytes], tmp_path: Path
) -> None:
    header = header_of(members)
    change(header)
    text = json.dumps(header).replace("Infinity", "1e400").encode()
    assert message in refusal(encode_archive({**members, "profile.json": text}), tmp_path)


def test_a_member_that_is_not_listed_is_refused(members: dict[str, bytes], tmp_path: Path) -> None:
    sizes = header_of(members)["members"]
    assert "other members" in refusal(with_header(members, members={**sizes, "ghost": 1}), tmp_path)


def unit_changed(**changes: Any) -> Callable[[dict[str, Any]], None]:
    """Change a field of the first unit of the device."""

    def change(header: dict[str, Any]) -> None:
        header["origin"]["meter"]["device"]["units"][0].update(changes)

    return change


def unit_repeated(header: dict[str, Any]) -> None:
    device = header["origin"]["meter"]["device"]
    device["units"].append(device["units"][0])


DEVICE = "origin.meter.device"
WRONG_DEVICES: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (removed(DEVICE), "lacks the field 'device'"),
    (changed(DEVICE, []), "device is no object"),
    (changed(f"{DEVICE}.novelty", 1), "unknown field 'novelty'"),
    (removed(f"{DEVICE}.tdp_w"), "lacks the field 'tdp_w'"),
    (removed(f"{DEVICE}.tdp_w.low"), "lacks the field 'low'"),
    (changed(f"{DEVICE}.tdp_w.novelty", 1), "unknown field 'novelty'"),
    (changed(f"{DEVICE}.tdp_w.low", -1.0), "tdp_w: need 0 < low <= value <= high"),
    (changed(f"{DEVICE}.tdp_w.low", 1e400), "low is not finite"),
    (changed(f"{DEVICE}.tdp_w.source", 7), "source is no string"),
    (changed(f"{DEVICE}.tdp_w.high", 1e300), "tdp_w lies beyond"),
    (changed(f"{DEVICE}.units", []), "needs the unit 'vector float32'"),
    (changed(f"{DEVICE}.units", {}), "units is no list"),
    (unit_changed(kind="quantum"), "kind is 'quantum'"),
    (unit_changed(arithmetic="\x1b[2J"), r"arithmetic is '\x1b[2J'"),
    (unit_changed(novelty=1), "unknown field 'novelty'"),
    (unit_repeated, "'vector float32' is given twice"),
    (changed("origin.meter.unit", "B"), "the model of a device gives joules"),
    (changed("origin.meter.provenance", "measured"), "the model of a device gives joules"),
]


@pytest.mark.parametrize(("change", "message"), WRONG_DEVICES, ids=range(len(WRONG_DEVICES)))
def test_a_wrong_device_is_named(
    change: Callable[[dict[str, Any]], None], message: str, tmp_path: Path
) -> None:
    members = members_of(profile_of([copy(8)], read_model("h200")), tmp_path)
    header = header_of(members)
    change(header)
    text = json.dumps(header).replace("Infinity", "1e400").encode()
    assert message in refusal(encode_archive({**members, "profile.json": text}), tmp_path)
