"""Where a candidate rounds more than its baseline, apart from the verdict over the reals."""

from collections.abc import Mapping

from scalify.precision.finding import PrecisionError, PrecisionFinding
from scalify.report.page import Page, Styled
from scalify.report.places import add_place

SHOWN = 8
MEASURED = "(each operation rounded once to its dtype, emulated, beside float64)"


def add_precision(page: Page, findings: tuple[PrecisionFinding, ...], sources: Mapping[str, str]) -> None:
    """Each finding with both places, and how large errors are there."""
    if not findings:
        return
    page.heading("Precision (apart from equality over the reals)")
    for finding in findings[:SHOWN]:
        times = f" ({finding.times} times)" if finding.times > 1 else ""
        page.entry(Styled(finding.text, "doubt"), times)
        add_place(page, "candidate", finding.candidate, sources)
        if finding.baseline is not None:
            add_place(page, "baseline", finding.baseline, sources)
        if finding.error is not None:
            page.fact("error", _error_text(finding.error))
    if len(findings) > SHOWN:
        page.entry(Styled(f"and {len(findings) - SHOWN} more: --format json shows them", "faint"))
    if any(finding.error is not None for finding in findings):
        page.line(Styled(f"errors are relative root mean squares {MEASURED}", "faint"), first="  ", hang=2)


def _error_text(error: PrecisionError) -> str:
    """``3e-3 here, 2e-8 in the baseline``."""
    sides = [("here", error.candidate), ("in the baseline", error.baseline)]
    return ", ".join(f"{value:.1e} {where}" for where, value in sides if value is not None)
