"""A result to where it was asked for: standard output, for people or for programs, and a file."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from scalify.errors import EXIT_OK, EXIT_REFUTED, EXIT_UNKNOWN
from scalify.report.page import page_for, show
from scalify.report.result import Outcome, Result
from scalify.report.store import as_json, save
from scalify.report.text import add_report

_STATUS: Mapping[Outcome, int] = {"proved": EXIT_OK, "refuted": EXIT_REFUTED, "unknown": EXIT_UNKNOWN}


def deliver(
    result: Result, format: Literal["text", "json", "sarif"], file: Path | None, *, full: bool
) -> None:
    """Write and print. Text is in full if asked for; JSON always is."""
    if file is not None:
        save(result, file)
    if format == "json":
        sys.stdout.write(as_json(result) + "\n")
    elif format == "sarif":
        from scalify.report.sarif import as_sarif

        sys.stdout.write(as_sarif(result) + "\n")
    else:
        page = page_for(sys.stdout)
        add_report(page, result, full=full)
        show(page)


def exit_status(result: Result, *, strict_precision: bool = False) -> int:
    """0 for a proof; 3 if it is not enough that programs are equal over the reals, and one rounds more."""
    if strict_precision and result.verdict == "proved" and result.precision:
        return EXIT_REFUTED
    return _STATUS[result.verdict]
