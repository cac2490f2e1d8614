"""What ``magneton doctor`` found, for people and for programs."""

import sys
from collections.abc import Iterator, Sequence
from typing import Literal

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from magneton.doctor import Check, Conditions, Diagnosis
from magneton.meters.probe import BoardProbe
from magneton.report.console import console_for, facts_table, heading
from magneton.report.escape import visible
from magneton.report.json import document
from magneton.report.quantities import figure

DOCTOR_SCHEMA = "magneton-doctor"
DOCTOR_VERSION = 1

_STYLES = {"ok": "green", "absent": "dim", "unusable": "bold yellow"}
_FIELDS = {185: "average power", 186: "instantaneous power", 83: "energy", 191: "energy (new)"}


def print_diagnosis(diagnosis: Diagnosis, format: Literal["text", "json"]) -> None:
    """To standard output. Apart from other results, so that nobody waits for matching to be loaded."""
    if format == "json":
        sys.stdout.write(doctor_json(diagnosis) + "\n")
    else:
        print_doctor(diagnosis, console_for(sys.stdout))


def doctor_json(diagnosis: Diagnosis) -> str:
    return document(DOCTOR_SCHEMA, DOCTOR_VERSION, diagnosis)


def print_doctor(diagnosis: Diagnosis, console: Console) -> None:
    """Each thing looked at with its state, then what figures from here are worth."""
    _print_checks("This machine", diagnosis.machine, console)
    _print_checks("Sensors", diagnosis.sensors, console)
    _print_checks("Models of devices", diagnosis.models, console)
    _print_checks("Packages", diagnosis.packages, console)
    console.print(heading("What can be trusted here"))
    console.print(Padding(_points([*diagnosis.trust, _automatic(diagnosis)]), (1, 0, 0, 3)))


def _automatic(diagnosis: Diagnosis) -> str:
    taken = [f"{meter} for work on {kind}" for kind, meter in diagnosis.meters.items()]
    return f"--meter auto takes {', '.join(taken)}"


def _points(sentences: Sequence[str]) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for sentence in sentences:
        table.add_row("-", visible(sentence))
    return table


def _print_checks(title: str, checks: Sequence[Check], console: Console) -> None:
    console.print(heading(title))
    console.print(Padding(facts_table([(visible(c.name), _check(c)) for c in checks]), (1, 0, 1, 3)))


def _check(check: Check) -> Text:
    text = Text(check.state, style=_STYLES[check.state])
    text.append(visible(f": {check.detail}"), style="default")
    for line in _lines(check):
        text.append("\n" + visible(line), style="default")
    if check.advice:
        text.append("\n" + visible(check.advice), style="italic")
    return text


def _lines(check: Check) -> Iterator[str]:
    """What was found out about a sensor; nothing for what is none."""
    if check.reads:
        yield f"reads {check.reads}"
    figures = list(_figures(check))
    if figures:
        yield "; ".join(figures)
    if check.probe is not None:
        yield "; ".join(_probe(check.probe))
    if check.now is not None:
        yield f"now: {', '.join(_conditions(check.now))}"


def _figures(check: Check) -> Iterator[str]:
    if check.update_period_s is not None:
        step = "" if check.resolution_j is None else f", in steps of {figure(check.resolution_j, 'J')}"
        yield f"new figures every {figure(check.update_period_s, 's')}{step}"
    if check.shortest_window_s:
        yield f"windows of {figure(check.shortest_window_s, 's')} or more"
    if check.gain is not None:
        yield f"scale within {check.gain * 100:.0f} %" if check.gain < 1 else "scale within a factor of two"


def _probe(probe: BoardProbe) -> Iterator[str]:
    if probe.agreement is not None:
        yield f"instantaneous power is {probe.agreement:.2f} of the counter's"
    yield "stale figures when it is read often" if probe.stale else "reading it often does no harm"
    offered = [_FIELDS.get(number, f"field {number}") for number in probe.fields]
    yield f"offers {', '.join(offered) or 'no fields of power or energy'}"
    yield f"probed {probe.probed_at}"


def _conditions(now: Conditions) -> Iterator[str]:
    if now.power_w is not None:
        yield figure(now.power_w, "W")
    if now.temperature_c is not None:
        yield f"{now.temperature_c:.0f} C"
    if now.clock_hz is not None:
        yield f"{now.clock_hz / 1e6:.0f} MHz"
    if now.temperature_c is None and now.clock_hz is None:
        return
    yield f"held down: {', '.join(now.throttle)}" if now.throttle else "clocks not held down"
    if now.processes is not None:
        yield f"processes of others: {now.processes}"
