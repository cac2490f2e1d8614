"""The corpus of bugs in host models: some entries in every run, all of them where slow tests are run."""

import json
from pathlib import Path

import pytest
from silent_bugs.entry import entry_names, load_entry, planted_lines
from silent_bugs.run import DOCS, RESULT, rows_of, table

SOME = ("b22_number_added_to_pending_sum", "b24_mean_of_unequal_means")


@pytest.mark.parametrize("name", entry_names())
def test_a_bug_is_planted_on_a_line(name: str) -> None:
    entry = load_entry(name)
    assert (entry.buggy is None) == (not planted_lines(name))


@pytest.mark.parametrize("name", SOME)
def test_a_bug_is_refuted_where_it_is_and_its_mending_proved(name: str) -> None:
    buggy, fixed = rows_of(name)
    assert (buggy["verdict"], buggy["site_found"], buggy["replayed"]) == ("Refuted", True, True)
    assert fixed["verdict"] == "Proved"


@pytest.mark.slow
@pytest.mark.parametrize("name", entry_names())
def test_no_bug_is_proved_and_nothing_right_refuted(name: str) -> None:
    for row in rows_of(name):
        is_bug = row["version"] == "buggy"
        assert row["verdict"] != ("Proved" if is_bug else "Refuted") or row["as_expected"]


def test_the_table_shows_the_results() -> None:
    rows = json.loads(Path(RESULT).read_text(encoding="utf-8"))["pairs"]
    assert table(rows) in DOCS.read_text(encoding="utf-8")
