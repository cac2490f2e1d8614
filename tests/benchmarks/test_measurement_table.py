"""What docs/measuring.md says of accuracy is what the benchmark found."""

import json
from pathlib import Path

from measurement_table import RESULT, table

DOCS = (Path(__file__).parents[2] / "docs" / "measuring.md").read_text(encoding="utf-8")


def test_the_table_is_that_of_the_results() -> None:
    assert table(json.loads(RESULT.read_text(encoding="utf-8"))) in DOCS


def test_no_disturbance_leaves_an_unsound_figure() -> None:
    figures = json.loads(RESULT.read_text(encoding="utf-8"))

    assert [row for row in figures["disturbed"] if not row["sound"]] == []
