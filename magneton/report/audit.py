"""What one system wastes by itself, for people and for programs."""

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from magneton.audit.model import Audit, AuditedStep, Waste
from magneton.report.console import Line, facts_table, figures_table, heading
from magneton.report.escape import visible
from magneton.report.json import document
from magneton.report.origins import (
    device_line,
    doubt_line,
    frame_text,
    meter_facts,
    system_line,
    workload_line,
)
from magneton.report.quantities import figure, percent, quantity
from magneton.report.work import module_line, operators_line

AUDIT_SCHEMA = "magneton-audit"
AUDIT_VERSION = 1

_HINT = (
    "How to read this: 'at most' is what a step would save if the operators named here were gone; what takes"
    " their place is not known before it is tried. One operator may be in several places, so shares do not"
    " add up. Compare with the changed version to see what is really saved."
)


def audit_json(audit: Audit) -> str:
    return document(AUDIT_SCHEMA, AUDIT_VERSION, audit)


def print_audit(audit: Audit, console: Console, *, top: int = 10) -> None:
    """Origin, what was looked at, the ``top`` largest wastes, doubts."""
    origin = audit.origin
    facts = (
        ("system", system_line(origin)),
        ("model", visible(origin.model)),
        ("workload", workload_line(origin)),
        ("device", device_line(origin)),
        *meter_facts(origin),
    )
    console.print(facts_table(facts))
    console.print()
    console.print(figures_table(_COLUMNS, [_step(step, audit) for step in audit.steps], width=console.width))
    if audit.wastes:
        console.print(heading("What nobody needs"))
        console.print()
    else:
        takes = f" takes {percent(audit.min_share)} of a step or more" if audit.min_share else " was seen"
        console.print(f"No known pattern of waste{takes}.\n")
    for number, waste in enumerate(audit.wastes[:top], start=1):
        console.print(_waste(number, waste, audit))
        console.print()
    if len(audit.wastes) > top:
        console.print(f"{len(audit.wastes) - top} more: --top shows them\n")
    if audit.small:
        what = "1 place takes" if audit.small == 1 else f"{audit.small} places take"
        console.print(f"{what} less than {percent(audit.min_share)} of a step: --min-share 0 shows them\n")
    if audit.doubts:
        console.print(heading("To keep in mind"))
        doubts = [("doubt", doubt_line(doubt)) for doubt in audit.doubts]
        console.print(Padding(facts_table(doubts), (1, 0, 1, 3)))
    console.print(Text(_HINT, style="dim"))


_COLUMNS = ("per step", "cost", "operators", "in such places")


def _step(step: AuditedStep, audit: Audit) -> Line:
    phase = visible(step.phase, longest=20)
    return Line(cells=(phase, quantity(step.cost, audit.unit), str(step.operators), percent(step.share)))


def _waste(number: int, waste: Waste, audit: Audit) -> RenderableType:
    line = Text(f"{number}. ", style="bold")
    line.append(waste.pattern, style="bold red")
    line.append(f": {_amount(waste, audit)} in {visible(waste.phase)}")
    times = f", {waste.repeats} times per step" if waste.repeats > 1 else ""
    facts: list[tuple[str, Text | str]] = [
        ("where", (module_line(waste.work) or "outside any module") + times),
        ("line", frame_text(waste.work.source)),
        ("operators", operators_line(waste.work)),
        ("seen", visible(waste.evidence)),
        ("change", visible(waste.change)),
    ]
    return Group(line, Padding(facts_table(facts), (0, 0, 0, 3)))


def _amount(waste: Waste, audit: Audit) -> str:
    cost = figure(None if waste.cost is None else waste.cost.value, audit.unit)
    if waste.avoidable is None:
        return f"{cost} per step ({percent(waste.share)} of it), and what waiting costs"
    return f"at most {percent(waste.avoidable)} of a step, of {cost}"
