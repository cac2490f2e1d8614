"""One finding on one screen: what work, how often, how much, on which lines, and what may be behind it."""

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from magneton.compare.model import (
    Comparison,
    Difference,
    Finding,
    HostFinding,
    Row,
    SideCost,
    Trial,
    Work,
)
from magneton.quantity import Provenance, Quantity
from magneton.report.console import Line, facts_table, figures_table, heading
from magneton.report.escape import visible
from magneton.report.origins import frame_text, short_file
from magneton.report.quantities import figure, percent, ratio
from magneton.report.work import module_line, one_side, operators_line, reason_line, row_title, work_line

_STYLES = {"waste": "bold red", "trade-off": "bold yellow", "unresolved": "bold magenta"}
CALLERS = 3
CAUSES = 6  # settings listed with a finding


def print_findings(comparison: Comparison, console: Console, top: int) -> None:
    """What is certain in full, what is open in a line each; at most ``top`` of either."""
    certain = [finding for finding in comparison.findings if finding.outcome != "unresolved"]
    if certain or comparison.host_findings:
        console.print(heading("Findings"))
        console.print()
    for number, finding in enumerate(certain[:top], start=1):
        console.print(_finding(number, finding, comparison))
        console.print()
    for number, found in enumerate(comparison.host_findings, start=min(len(certain), top) + 1):
        console.print(_host_finding(number, found))
        console.print()
    if len(certain) > top:
        console.print(f"{len(certain) - top} more findings: --top shows them\n")
    unresolved = [finding for finding in comparison.findings if finding.outcome == "unresolved"]
    if unresolved:
        _print_unresolved(unresolved, comparison, console, top)


def _print_unresolved(
    findings: Sequence[Finding], comparison: Comparison, console: Console, top: int
) -> None:
    console.print(Text("Unresolved", style=_STYLES["unresolved"]), "(more rounds may tell)\n")
    lines: list[Line] = []
    for finding in findings[:top]:
        row = comparison.rows[finding.row]
        figures = (figure(finding.excess, comparison.unit), percent(finding.excess_share), ratio(row.ratio))
        phase = visible(row.phase, longest=10)
        title = f"{phase} {row_title(row, console.width - 54 - len(phase))}"
        below = visible(finding.note) if row.kind == "leftover" else work_line(row)
        lines.append(Line(cells=(title, finding.costly, *figures), below=below))
    columns = ("work", "side", "may spend", "of a step", "ratio")
    console.print(figures_table(columns, lines, width=console.width))
    if len(findings) > top:
        console.print(f"{len(findings) - top} more, with less at stake: --top shows them\n")


def _finding(number: int, finding: Finding, comparison: Comparison) -> RenderableType:
    row = comparison.rows[finding.row]
    return Group(
        _headline(number, finding, row, comparison),
        Padding(facts_table(_facts(finding, row, comparison)), (0, 0, 0, 3)),
    )


def _host_finding(number: int, finding: HostFinding) -> RenderableType:
    line = Text(f"{number}. ", style="bold")
    line.append(finding.outcome, style=_STYLES[finding.outcome])
    amount = f"{figure(finding.excess_j, 'J')} per step"
    line.append(f": the host of the {finding.costly} spends {amount} more in {visible(finding.phase)}")
    modelled = finding.ratio.provenance is Provenance.MODELLED
    what = "costly over lean host" + (": of CPU time, for the hosts are modelled" if modelled else "")
    facts: list[tuple[str, Text | str]] = [("ratio", f"{ratio(finding.ratio)}, {what}")]
    if finding.device_alike:
        text = "spend alike: look for a host that spins where it could sleep (synchronisation, polling)"
        facts.append(("devices", text))
    facts.append(("cause", _untested(finding.causes)))
    return Group(line, Padding(facts_table(facts), (0, 0, 0, 3)))


def _headline(number: int, finding: Finding, row: Row, comparison: Comparison) -> Text:
    unit = comparison.unit
    line = Text(f"{number}. ", style="bold")
    line.append(finding.outcome, style=_STYLES[finding.outcome])
    amount = f"{figure(finding.excess, unit)} per step ({percent(finding.excess_share)} of it)"
    line.append(f": the {finding.costly} spends {amount} more in {visible(row.phase)}")
    if row.kind == "leftover":
        line.append(", on work that only it does")
    return line


def _facts(finding: Finding, row: Row, comparison: Comparison) -> list[tuple[str, Text | str]]:
    facts: list[tuple[str, Text | str]] = [("where", _where(row))]
    if finding.ratio is not None:
        facts.append(("ratio", f"{ratio(finding.ratio)}, costly over lean side"))
    if finding.duration_ratio is not None:
        facts.append(("time", _time(finding.duration_ratio, row)))
    for name, side in (("baseline", row.baseline), ("candidate", row.candidate)):
        if side is not None:
            facts += _side_facts(name, side, comparison)
    facts.append(("kind", visible(f"{finding.kind}: {finding.kind_reason}")))
    facts += _causes(finding)
    return facts


def _where(row: Row) -> str:
    module = module_line(one_side(row).work) or "outside any module"
    times = f", {row.repeats} times per step" if row.repeats > 1 else ""
    why = reason_line(row)
    return f"{module}{times}{f' ({why})' if why else ''}"


def _time(lean_over_costly: Quantity, row: Row) -> str:
    durations = [
        f"{name} {figure(side.duration_s, 's')}"
        for name, side in (("baseline", row.baseline), ("candidate", row.candidate))
        if side is not None and side.duration_s is not None
    ]
    return f"{', '.join(durations)}: {ratio(lean_over_costly)}, lean over costly side"


def _side_facts(name: str, side: SideCost, comparison: Comparison) -> list[tuple[str, Text | str]]:
    amount = figure(None if side.cost is None else side.cost.value, comparison.unit)
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


def _causes(finding: Finding) -> list[tuple[str, Text | str]]:
    """The cause that was shown, then what was tried before it; without trials, the candidates."""
    if not finding.trials:
        return [("cause", _untested(finding.causes))]
    trials = list(finding.trials)
    facts: list[tuple[str, Text | str]] = []
    if finding.confirmed:
        facts.append(("cause", Text(_trial(trials.pop()), style="bold green")))
    else:
        facts.append(("cause", "none of the candidates is shown to be it"))
    facts += [("tried", _trial(trial)) for trial in trials[:CAUSES]]
    if len(trials) > CAUSES:
        facts.append(("", f"{len(trials) - CAUSES} more trials"))
    return facts


def _trial(trial: Trial) -> str:
    causes = "; ".join(difference_line(cause) for cause in trial.causes)
    return visible(f"{trial.verdict}: {causes} ({trial.reason})")


def _untested(causes: Sequence[Difference]) -> str:
    if not causes:
        return "not tested; no option was set and no flag of both sides differs"
    shown = "; ".join(difference_line(cause) for cause in causes[:CAUSES])
    more = f"; {len(causes) - CAUSES} more" if len(causes) > CAUSES else ""
    return f"not tested; candidates: {shown}{more}"


def difference_line(difference: Difference) -> str:
    """``option attn_implementation: eager / sdpa``."""
    one, other = (
        "unset" if value is None else value for value in (difference.baseline, difference.candidate)
    )
    return visible(f"{difference.where} {difference.name}: {one} / {other}")
