"""SARIF as code scanners take it: the members that 2.1.0 requires, relative paths, ids that stay."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scalify_results import killed, proved, refuted, stuck, suspect

from scalify.ir.graph import NodeId, Site
from scalify.precision.finding import Kind, PrecisionFinding
from scalify.report.result import Result
from scalify.report.sarif import as_sarif
from scalify.verdict import Place


def run_of(result: Result) -> Mapping[str, Any]:
    log = json.loads(as_sarif(result))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    return run


def findings(result: Result) -> Sequence[Mapping[str, Any]]:
    return run_of(result)["results"]


def rounding() -> PrecisionFinding:
    place = Place(node=NodeId("cast.1"), op="cast", site=Site("model_tp.py", 40, "forward"), scope="norm")
    return PrecisionFinding(
        kind=Kind.ROUNDED,
        candidate=place,
        baseline=place,
        expected="f32",
        found="bf16",
        text="rounded to bf16 before the sum",
    )


@pytest.mark.parametrize("result", [proved, refuted, stuck, killed])
def test_what_2_1_0_requires_is_there(result: Callable[[], Result]) -> None:
    run = run_of(result())
    driver = run["tool"]["driver"]
    assert driver["name"] == "scalify"
    assert all(rule["id"] and rule["shortDescription"]["text"] for rule in driver["rules"])
    for finding in run["results"]:
        assert finding["message"]["text"]
        assert finding["level"] in ("error", "warning", "note")
        assert driver["rules"][finding["ruleIndex"]]["id"] == finding["ruleId"]
        assert len(finding["locations"]) == 1
        for location in (*finding["locations"], *finding.get("relatedLocations", ())):
            _check(location["physicalLocation"])
        numbers = [related["id"] for related in finding.get("relatedLocations", ())]
        assert numbers == list(range(1, len(numbers) + 1))
        assert all(isinstance(value, str) for value in finding["partialFingerprints"].values())


def _check(physical: Mapping[str, Any]) -> None:
    uri = physical["artifactLocation"]["uri"]
    assert not uri.startswith(("/", "file:"))
    assert ".." not in uri.split("/")
    assert physical["region"]["startLine"] >= 1


def test_a_refutation_is_an_error_at_the_line_of_the_candidate() -> None:
    (finding,) = findings(refuted())
    assert (finding["ruleId"], finding["level"]) == ("scalify/refuted", "error")
    place = finding["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "model_tp.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 88, "snippet": {"text": "        return self.down(hidden)"}}
    assert finding["message"]["text"] == (
        "An all-reduce over tp is missing before this addition. "
        "Element [0, 0, 3] of out on rank 1 is 2.5, expected is 1.25."
    )
    assert [each["message"]["text"] for each in finding["relatedLocations"]][:2] == [
        "the baseline",
        "data is moved here: transpose",
    ]
    assert finding["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"] == (
        "transformers/llama.py"
    )


def test_a_proof_has_no_finding_but_those_of_precision() -> None:
    assert findings(proved()) == []
    (finding,) = findings(replace(proved(), precision=(rounding(),)))
    assert (finding["ruleId"], finding["level"]) == ("scalify/precision", "warning")
    assert finding["locations"][0]["physicalLocation"]["region"]["startLine"] == 40


def test_unknown_is_a_warning_where_there_is_a_place_and_else_a_note() -> None:
    assert [each["level"] for each in findings(stuck())] == ["warning"]
    (finding,) = findings(killed())
    assert finding["level"] == "note"
    assert finding["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "llama.rank0.pt"


def test_a_fingerprint_does_not_depend_on_the_line_or_the_layer() -> None:
    moved = replace(
        suspect(),
        candidate=replace(
            suspect().candidate, site=Site("model_tp.py", 90, "forward"), scope="model.layers.7.mlp"
        ),
    )
    one, other = (findings(replace(stuck(), suspect=each))[0] for each in (suspect(), moved))
    assert one["partialFingerprints"] == other["partialFingerprints"]


def test_a_file_below_the_folder_one_stands_in_is_relative_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = replace(suspect().candidate, site=Site(str(tmp_path / "a b" / "model.py"), 3))
    (finding,) = findings(replace(stuck(), suspect=replace(suspect(), candidate=place)))
    assert finding["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b/model.py"
