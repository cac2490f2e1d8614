"""The accuracy benchmark's figures as the table that docs/measuring.md shows.

python benchmarks/measurement_table.py
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parent / "results" / "measurement_accuracy.json"
WINDOWS = {
    "counter around one execution": "counter, one execution",
    "counter, a loop of 0.2 s": "counter, a loop of 0.2 s",
    "Zeus, a loop of 0.2 s": "Zeus, a loop of 0.2 s",
    "Zeus, a loop of 2 s": "Zeus, a loop of 2 s",
}


def table(figures: Mapping[str, Any]) -> str:
    """One line a board: the range of single windows over its operators, replay at worst, its intervals."""
    columns = ("board", *WINDOWS, "replay", "its interval")
    lines = [_line(columns), "|---" * len(columns) + "|"]
    for board, found in figures["coverage"].items():
        rows = [row for row in figures["accuracy"] if row["board"] == board]
        ranges = [_range(row["windows"][name] for row in rows) for name in WINDOWS.values()]
        worst = max([found["worst_error"], *(abs(row["replay"]["operators"][0]["error"]) for row in rows)])
        interval = (
            f"±{found['median_half_width']:.1%}, holds the truth in {found['cover']} of {found['read']}"
        )
        lines.append(_line((board.replace("_", " "), *ranges, f"{worst:.1%} at worst", interval)))
    return "\n".join(lines).replace("%", " %") + "\n"


def _range(errors: Iterable[Mapping[str, float]]) -> str:
    found = list(errors)
    lowest, highest = min(e["lowest"] for e in found), max(e["highest"] for e in found)
    return f"{lowest * 100:+.0f} to {highest:+.0%}"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    print(table(json.loads(RESULT.read_text(encoding="utf-8"))), end="")
