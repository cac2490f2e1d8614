"""Results in files: exact both ways, and strict with what others wrote."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scalify_results import killed, proved, refuted, stuck

from scalify.errors import ScalifyError
from scalify.report.result import Result
from scalify.report.store import as_json, check_place, load, save


@pytest.mark.parametrize("result", [proved, stuck, refuted, killed])
def test_what_was_saved_is_loaded(result: Callable[[], Result], tmp_path: Path):
    save(result(), tmp_path / "result.json")
    assert load(tmp_path / "result.json") == result()
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_the_json_is_documented_field_by_field():
    """A contract: a name that changes here is a new version."""
    content = json.loads(as_json(stuck()))
    assert (content["schema"], content["version"]) == ("scalify.result", 1)
    assert content["verdict"] == "unknown"
    assert content["reason"] == "unproved"
    assert content["candidate"]["mesh"] == [{"name": "tp", "size": 4}]
    assert content["outputs"][0] == {"baseline": "logits", "candidate": "out", "layout": None}
    assert content["assumptions"][0] == {
        "input": "tokens",
        "of": ["ids"],
        "text": "replicated",
        "stated": False,
    }
    assert content["suspect"]["candidate"]["site"] == {
        "file": "model_tp.py",
        "line": 88,
        "function": "forward",
    }
    documented = (Path(__file__).parents[3] / "docs/scalify-json.md").read_text()
    for name in _names(content) | _names(json.loads(as_json(refuted()))):
        assert f"`{name}`" in documented, name


def _names(content: dict[str, Any]) -> set[str]:
    """Names of fields at all levels; those of ``sources`` are data."""
    found = set(content)
    for name, value in content.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict) and name != "sources":
                found |= _names(each)
    return found


def test_nothing_in_it_can_be_obeyed_by_who_prints_it():
    result = killed("\x1b[31m\u202e##[group]")
    text = as_json(result)
    assert text.isascii()
    assert "\x1b" not in text
    assert "##" not in text
    assert json.loads(text)["detail"] == result.detail


def changed(**fields: object) -> dict[str, Any]:
    return json.loads(as_json(stuck())) | fields


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "no result of scalify"),
        ("{}", "no result of scalify"),
        (json.dumps({"schema": "scalify.result"}), "version None"),
        (json.dumps(changed(version=2)), "version 2"),
        (json.dumps(changed(verdict="certain")), "damaged: 'certain' is none of"),
        (json.dumps(changed(reason="boredom")), "damaged"),
        (json.dumps(changed(reason=["unproved"])), "damaged"),
        (json.dumps(changed(outputs={})), "damaged"),
        (json.dumps(changed(notes=[1])), "damaged"),
        (json.dumps(changed(surprise=1)), "fields of Result differ: 'surprise'"),
        (json.dumps({"schema": "scalify.result", "version": 1}), "fields of Result differ: 'baseline'"),
        (json.dumps(changed(work={"regions": True})), "damaged"),
        (json.dumps(changed(cost={"cpu_s": "1", "wall_s": 2})), "damaged"),
    ],
)
def test_a_file_that_is_no_result_is_refused_in_one_line(content: str, told: str, tmp_path: Path):
    path = tmp_path / "result.json"
    path.write_text(content)
    with pytest.raises(ScalifyError) as raised:
        load(path)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


def test_a_field_that_was_added_since_may_be_missing(tmp_path: Path):
    content = changed()
    del content["sources"]
    path = tmp_path / "result.json"
    path.write_text(json.dumps(content))
    assert load(path).sources == {}


def test_a_file_that_is_not_there_is_the_users_error(tmp_path: Path):
    with pytest.raises(ScalifyError, match="cannot read"):
        load(tmp_path / "result.json")


@pytest.mark.parametrize("name", ["nowhere/result.json", "."])
def test_a_place_that_cannot_be_written_is_the_users_error(name: str, tmp_path: Path):
    with pytest.raises(ScalifyError, match="cannot write"):
        save(proved(), tmp_path / name)
    with pytest.raises(ScalifyError, match="cannot write"):
        check_place(tmp_path / name)
    check_place(tmp_path / "result.json")
