"""One finding on one screen: what work, how often, how much, on which lines, and what may be behind it."""

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from magneton.compare.model import Comparison, Difference, Finding, Row, SideCost, Work
from magneton.report.console import facts_table
from magneton.report.escape import visible
from magneton.report.origins import frame_text, short_file
from magneton.report.quantities import figure, percent, quantity, ratio
from magneton.report.work import module_line, one_side, operators_line, reason_line

_STYLES = {"waste": "bold red", "trade-off": "bold yellow", "unresolved": "bold magenta"}
CALLERS = 2
CAUSES = 6  # settings listed with a finding


def print_findings(comparison: Comparison, console: Console, top: int) -> None:
    """The findings, at most ``top`` of them."""
    for number, finding in enumerate(comparison.findings[:top], start=1):
        console.print(_finding(number, finding, comparison))
        console.print()
    if len(comparison.findings) > top:
        console.print(f"{len(comparison.findings) - top} more findings: --top shows them")
        console.print()


def _finding(number: int, finding: Finding, comparison: Comparison) -> RenderableType:
    row = comparison.rows[finding.row]
    return Group(
        _headline(number, finding, row, comparison),
        Padding(facts_table(_facts(finding, row, comparison)), (0, 0, 0, 3)),
    )


def _headline(number: int, finding: Finding, row: Row, comparison: Comparison) -> Text:
    unit = comparison.unit
    line = Text(f"{number}. ", style="bold")
    line.append(finding.outcome, style=_STYLES[finding.outcome])
    amount = f"{figure(finding.excess, unit)} per step ({percent(finding.excess_share)} of it)"
    spends = "may spend" if finding.outcome == "unresolved" else "spends"
    line.append(f": the {finding.costly} {spends} {amount} more in {visible(row.phase)}")
    if row.kind == "leftover":
        line.append(", on work that only it does")
    return line


def _facts(finding: Finding, row: Row, comparison: Comparison) -> list[tuple[str, Text | str]]:
    facts: list[tuple[str, Text | str]] = [("where", _where(row))]
    if finding.note:
        facts.append(("doubt", visible(finding.note)))
    if finding.ratio is not None:
        facts.append(("ratio", f"{ratio(finding.ratio)}, {finding.costly} over the other side"))
    if finding.slower is not None:
        facts.append(("time", _time(finding, row)))
    for name, side in (("baseline", row.baseline), ("candidate", row.candidate)):
        if side is not None:
            facts += _side_facts(name, side, comparison)
    facts.append(("kind", visible(f"{finding.kind}: {finding.kind_reason}")))
    facts.append(("cause", _cause(finding)))
    return facts


def _where(row: Row) -> str:
    module = module_line(one_side(row).work) or "outside any module"
    times = f", {row.repeats} times per step" if row.repeats > 1 else ""
    why = reason_line(row)
    return f"{module}{times}{f' ({why})' if why else ''}"


def _time(finding: Finding, row: Row) -> str:
    durations = [
        f"{name} {figure(side.duration_s, 's')}"
        for name, side in (("baseline", row.baseline), ("candidate", row.candidate))
        if side is not None and side.duration_s is not None
    ]
    change = (finding.slower or 1.0) - 1
    direction = "slower" if change > 0 else "faster"
    return f"{', '.join(durations)}: the lean side is {percent(abs(change))} {direction}"


def _side_facts(name: str, side: SideCost, comparison: Comparison) -> list[tuple[str, Text | str]]:
    amount = quantity(side.cost, comparison.unit)
    if side.work is None:
        return [(name, "does nothing here")]
    unread = f"; {side.unread} executions without a reading" if side.unread else ""
    return [
        (name, f"{amount} ({percent(side.share)}): {operators_line(side.work)}{unread}"),
        ("", frame_text(side.work.source)),
        *(("", Text(callers, style="dim")) for callers in [_callers(side.work)] if callers),
    ]


def _callers(work: Work) -> str:
    """Who called the line of ``source``, the nearest first."""
    if work.source is None:
        return ""
    above = work.chain[: len(work.chain) - 1 - work.chain[::-1].index(work.source)]
    shown = [f"{short_file(frame.file)}:{frame.line}" for frame in reversed(above[-CALLERS:])]
    return visible(f"called from {', '.join(shown)}") if shown else ""


def _cause(finding: Finding) -> str:
    tested = "confirmed" if finding.confirmed else "not tested"
    if not finding.causes:
        return f"{tested}; no setting that both sides have differs"
    shown = "; ".join(difference_line(cause) for cause in finding.causes[:CAUSES])
    more = f"; {len(finding.causes) - CAUSES} more" if len(finding.causes) > CAUSES else ""
    return f"{tested}; candidates: {shown}{more}"


def difference_line(difference: Difference) -> str:
    """``option attn_implementation: eager / sdpa``."""
    one, other = (
        "unset" if value is None else value for value in (difference.baseline, difference.candidate)
    )
    return visible(f"{difference.where} {difference.name}: {one} / {other}")
