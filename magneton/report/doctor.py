"""What ``magneton doctor`` found, for people and for programs."""

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from magneton.doctor import Check, Diagnosis
from magneton.report.console import facts_table, heading
from magneton.report.escape import visible
from magneton.report.json import document
from magneton.report.quantities import figure

DOCTOR_SCHEMA = "magneton-doctor"
DOCTOR_VERSION = 1

_STYLES = {"ok": "green", "absent": "dim", "unusable": "bold yellow"}


def doctor_json(diagnosis: Diagnosis) -> str:
    return document(DOCTOR_SCHEMA, DOCTOR_VERSION, diagnosis)


def print_doctor(diagnosis: Diagnosis, console: Console) -> None:
    """Each thing looked at with its state, then what figures from here are worth."""
    _print_checks("This machine", diagnosis.machine, console)
    _print_checks("Sensors", diagnosis.sensors, console)
    _print_checks("Packages", diagnosis.packages, console)
    console.print(heading("What can be trusted here"))
    lines = [visible(sentence) for sentence in diagnosis.trust]
    lines.append(f"--meter auto takes {visible(diagnosis.meter)} here")
    console.print(Padding(Text("\n".join(lines)), (1, 0, 0, 3)))


def _print_checks(title: str, checks: Sequence[Check], console: Console) -> None:
    console.print(heading(title))
    console.print(Padding(facts_table([(visible(c.name), _check(c)) for c in checks]), (1, 0, 1, 3)))


def _check(check: Check) -> Text:
    line = Text(check.state, style=_STYLES[check.state])
    figures = ""
    if check.update_period_s is not None:
        figures += f"; new figures every {figure(check.update_period_s, 's')}"
    if check.resolution_j is not None:
        figures += f", in steps of {figure(check.resolution_j, 'J')}"
    line.append(visible(f": {check.detail}{figures}"), style="default")
    if check.advice:
        line.append("\n" + visible(check.advice), style="italic")
    return line
