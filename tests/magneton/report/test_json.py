import json
from dataclasses import replace
from typing import Any

import pytest
from comparisons import a_side, matched
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import profiles

from magneton.compare.model import Criteria
from magneton.compare.profiles import compare
from magneton.profile.model import Profile, ScopeTime
from magneton.report.json import comparison_json, document
from magneton.report.profile import profile_json
from magneton.report.summary import summarise_profile
from magneton.workload import PREFILL


def strict(text: str) -> Any:
    """Parse as the standard says: NaN and Infinity are no JSON."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def of(baseline: Profile, candidate: Profile) -> Any:
    return strict(comparison_json(compare(baseline, candidate, matched(baseline, candidate), Criteria())))


def test_the_schema_and_its_version_come_first() -> None:
    report = of(a_side(), a_side())

    assert list(report)[:2] == ["schema", "version"]
    assert (report["schema"], report["version"]) == ("magneton-comparison", 1)


def test_findings_can_be_followed_to_their_rows_and_lines() -> None:
    report = of(a_side((2.0, 0.5, 2.0), seed=1), a_side(seed=2))
    (finding,) = report["findings"]
    row = report["rows"][finding["row"]]

    assert report["verdict"] == "findings"
    assert finding["outcome"] == "waste"
    assert finding["confirmed"] is False
    assert row["baseline"]["work"]["module_path"] == "model.layers.0-3.self_attn"
    assert row["baseline"]["work"]["source"]["line"] == 11
    assert row["ratio"]["low"] < row["ratio"]["value"] < row["ratio"]["high"]
    assert row["ratio"]["provenance"] == "modelled"


def test_a_residual_says_what_lies_between_operators() -> None:
    side = a_side(residual_j=10.0)
    scopes = tuple(
        ScopeTime(phase=PREFILL, scope=scope, duration_s=share, samples=round(100 * share))
        for scope, share in (("", 0.75), ("sampling", 0.25))
    )
    report = of(replace(side, scopes=scopes), a_side())
    (residual,) = [row for row in report["rows"] if row["kind"] == "residual"]

    assert {row["scope"] for row in residual["scopes"]} == {"", "sampling"}
    parts = [row["baseline"]["cost"]["value"] for row in residual["scopes"]]
    assert sum(parts) == pytest.approx(residual["baseline"]["cost"]["value"])
    assert [row["candidate"] for row in residual["scopes"]] == [None, None]


def test_unbounded_and_unmeasured_are_null() -> None:
    single = a_side(rounds=1)
    silent = replace(single, blocks=tuple(replace(b, energy_j=None) for b in single.blocks))

    report = of(silent, single)

    assert report["totals"][0]["baseline_cost"] is None
    assert report["totals"][0]["candidate_cost"]["low"] is None


def test_what_was_written_is_plain_ascii() -> None:
    report = comparison_json(
        compare(
            a_side(model="\x1b[2J\u202e模"),
            a_side(model="\x1b[2J\u202e模"),
            matched(a_side(), a_side()),
            Criteria(),
        )
    )

    assert report.isascii()
    assert "\x1b" not in report
    assert strict(report)["baseline"]["origin"]["model"] == "\x1b[2J\u202e模"


@settings(max_examples=25, deadline=None)
@given(st.text("#[v"))
def test_a_ci_runner_finds_no_command_in_a_document(text: str) -> None:
    written = document("schema", 1, {"text": text})

    assert "##" not in written
    assert json.loads(written)["text"] == text


@given(profiles())
def test_any_profile_has_a_summary_in_json(profile: Profile) -> None:
    report = strict(profile_json(summarise_profile(profile)))

    assert (report["schema"], report["version"]) == ("magneton-profile-summary", 1)
    assert sum(each["executions"] for each in report["operators"]) == len(profile.operators)


def test_only_what_json_knows_is_written() -> None:
    from magneton.report.json import plain

    with pytest.raises(TypeError):
        plain(object())
