"""One profile for people: where it comes from, what a step costs, and which operators take it."""

from rich.console import Console
from rich.padding import Padding

from magneton.profile.model import Frame
from magneton.report.console import Line, facts_table, figures_table, heading
from magneton.report.escape import visible
from magneton.report.json import document
from magneton.report.origins import (
    device_line,
    doubt_line,
    meter_facts,
    short_place,
    system_line,
    workload_line,
)
from magneton.report.quantities import figure, percent, quantity
from magneton.report.scopes import print_scopes
from magneton.report.summary import OperatorSummary, PhaseSummary, ProfileSummary
from magneton.report.work import short_name

PROFILE_SCHEMA = "magneton-profile-summary"
PROFILE_VERSION = 1


def profile_json(summary: ProfileSummary) -> str:
    return document(PROFILE_SCHEMA, PROFILE_VERSION, summary)


def print_profile(summary: ProfileSummary, console: Console, *, top: int = 10) -> None:
    """Origin, totals, the ``top`` costliest operators of each phase, doubts."""
    _print_origin(summary, console)
    _print_totals(summary, console)
    for phase in summary.phases:
        print_scopes(phase, summary.unit, console, top)
        operators = [each for each in summary.operators if each.phase == phase.phase]
        _print_operators(phase, operators, summary, console, top)
    if summary.doubts or summary.notes:
        console.print(heading("To keep in mind"))
        facts = [
            *(("note", visible(note)) for note in summary.notes),
            *(("doubt", doubt_line(doubt)) for doubt in summary.doubts),
        ]
        console.print(Padding(facts_table(facts), (1, 0, 0, 3)))


def _print_origin(summary: ProfileSummary, console: Console) -> None:
    origin = summary.origin
    recorded = f"{origin.recorded_at} by magneton {origin.magneton_version}"
    mode = f"{origin.mode}, {origin.grad_mode}"
    if origin.dataflow_mode != origin.mode:
        mode += f"; operators seen {origin.dataflow_mode}"
    facts = (
        ("system", system_line(origin)),
        ("model", visible(origin.model)),
        ("workload", workload_line(origin)),
        ("device", device_line(origin)),
        ("mode", visible(mode)),
        *meter_facts(origin),
        ("recorded", visible(recorded)),
    )
    console.print(facts_table(facts))
    console.print()


def _print_totals(summary: ProfileSummary, console: Console) -> None:
    name = "energy" if summary.unit == "J" else "count"
    columns = ("per step", name, "time", "operators", "unread", "unattributed")
    lines = [
        Line(
            cells=(
                visible(phase.phase, longest=20),
                quantity(phase.cost, summary.unit),
                quantity(phase.duration_s, "s"),
                str(phase.operators),
                str(phase.unread),
                figure(phase.unattributed, summary.unit),
            ),
            below=_remarks(phase),
        )
        for phase in summary.phases
    ]
    console.print(figures_table(columns, lines, width=console.width))


def _remarks(phase: PhaseSummary) -> str:
    """What is told of a step beside its figures."""
    remarks: list[str] = []
    if phase.net_j is not None:
        remarks.append(f"{quantity(phase.net_j, 'J')} of it above the device at rest")
    if phase.host_j is not None:
        remarks.append(f"the host spends {quantity(phase.host_j, 'J')} meanwhile")
    if phase.timeline_overhead is not None:
        times = f"{1 + phase.timeline_overhead:.2f}"
        remarks.append(f"steps under the framework's profiler took {times} times as long")
    return "\n".join(remarks)


def _print_operators(
    phase: PhaseSummary,
    operators: list[OperatorSummary],
    summary: ProfileSummary,
    console: Console,
    top: int,
) -> None:
    """Two lines for each: its figures and name, then where it was called."""
    console.print(heading(f"What a step of {visible(phase.phase)} is made of"))
    console.print()
    lines = [
        Line(
            cells=(
                visible(short_name(operator.name)),
                str(operator.executions),
                figure(None if operator.cost is None else operator.cost.value, summary.unit),
                percent(operator.share),
                figure(operator.duration_s, "s"),
            ),
            below=_place(operator.module_path, operator.source),
        )
        for operator in operators[:top]
    ]
    columns = ("operator", "times", "energy" if summary.unit == "J" else "count", "share", "time")
    console.print(figures_table(columns, lines, width=console.width))
    if len(operators) > top:
        console.print(f"{len(operators) - top} more kinds of operators: --top shows them\n")


def _place(module_path: str, source: Frame | None) -> str:
    return (
        "  ".join(part for part in (short_place(source), visible(module_path)) if part)
        or "outside any module"
    )
