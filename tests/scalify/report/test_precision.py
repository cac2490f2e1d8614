"""What a report says of precision, and the exit status that it may have."""

from dataclasses import replace
from pathlib import Path

import scalify_results as results

from scalify.ir.graph import NodeId, Site
from scalify.precision.finding import Kind, PrecisionError, PrecisionFinding
from scalify.report.output import exit_status
from scalify.report.page import Page
from scalify.report.precision import SHOWN, add_precision
from scalify.report.store import load, save
from scalify.report.text import add_report
from scalify.verdict import Place

SITE = Site("train.py", 212, "reduce_gradients")
FINDING = PrecisionFinding(
    kind=Kind.RANKS_SUM,
    candidate=Place(node=NodeId("all_reduce.4"), op="all_reduce", site=SITE, scope=""),
    baseline=None,
    expected="f32",
    found="bf16",
    text="this all_reduce sums over tp in bf16 where the baseline sums in f32",
    times=3,
    error=PrecisionError(baseline=None, candidate=0.0024),
)


def text_of(*findings: PrecisionFinding) -> str:
    page = Page()
    add_precision(page, findings, {"train.py:212": "dist.all_reduce(grad)"})
    return page.text()


def test_a_finding_has_its_place_its_line_and_its_error():
    text = text_of(FINDING)
    assert "Precision (apart from equality over the reals)" in text
    assert "sums over tp in bf16" in text
    assert "(3 times)" in " ".join(text.split())
    assert "train.py:212 in reduce_gradients" in text
    assert "dist.all_reduce(grad)" in text
    assert "2.4e-03 here\n" in text
    assert max(map(len, text.splitlines())) <= 80


def test_nothing_is_said_without_findings():
    assert text_of() == ""


def test_of_many_findings_some_are_shown_and_the_others_counted():
    assert "and 2 more" in text_of(*[FINDING] * (SHOWN + 2))


def test_what_was_not_measured_has_no_error():
    assert "error" not in text_of(replace(FINDING, error=None))


def test_findings_stand_in_the_report_and_in_its_json(tmp_path: Path):
    result = replace(results.proved(), precision=(FINDING,))
    page = Page()
    add_report(page, result)
    assert "PROVED" in page.text()
    assert "apart from equality over the reals" in page.text()
    save(result, tmp_path / "result.json")
    assert load(tmp_path / "result.json") == result


def test_only_if_asked_for_findings_change_the_status_of_a_proof():
    proved = replace(results.proved(), precision=(FINDING,))
    assert (exit_status(proved), exit_status(proved, strict_precision=True)) == (0, 3)
    assert exit_status(results.proved(), strict_precision=True) == 0
    assert exit_status(replace(results.stuck(), precision=(FINDING,)), strict_precision=True) == 4
