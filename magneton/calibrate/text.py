"""What a calibration found, for people and for programs."""

import sys
from collections.abc import Sequence
from typing import Literal

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from magneton.calibrate.calibration import Calibration
from magneton.calibrate.device import NOT_RUN, Row
from magneton.calibrate.fit import Fitted
from magneton.report.console import Line, console_for, facts_table, figures_table, heading
from magneton.report.escape import visible
from magneton.report.json import document
from magneton.report.quantities import figure

SCHEMA = "magneton-calibration"
VERSION = 1

# By how a coefficient's name ends: what people call it, its unit, and one of it in that unit.
_SPELLED = (
    ("constant_power_w", "constant power", "W", 1.0),
    ("tdp_w", "highest power", "W", 1.0),
    ("shortest_kernel_s", "shortest kernel", "us", 1e6),
    ("memory_bytes_per_s", "memory bandwidth", "GB/s", 1e-9),
    ("memory_j_per_byte", "from memory", "pJ/B", 1e12),
    ("cache_bytes", "cache", "MB", 1e-6),
    ("cache_j_per_byte", "from the cache", "pJ/B", 1e12),
    ("flop_per_s", "peak", "TFLOP/s", 1e-12),
    ("j_per_flop", "arithmetic", "pJ/FLOP", 1e12),
    ("j_per_launch", "launch", "uJ", 1e6),
)


def write_calibration(calibration: Calibration, format: Literal["text", "json"]) -> None:
    """To standard output."""
    if format == "json":
        sys.stdout.write(calibration_json(calibration) + "\n")
    else:
        print_calibration(calibration, console_for(sys.stdout))


def calibration_json(calibration: Calibration) -> str:
    return document(SCHEMA, VERSION, calibration)


def print_calibration(calibration: Calibration, console: Console) -> None:
    """Coefficients with their ranges, how well they explain what was measured, and what to doubt."""
    width = console.width
    console.print(heading(visible(f"{calibration.facts.name}, by the meter {calibration.meter.name}")))
    console.print(Padding(facts_table(_facts(calibration)), (1, 0, 1, 3)))
    console.print(heading("Coefficients"))
    console.print()
    lines = [_line(row, calibration.nearest) for row in calibration.rows]
    console.print(figures_table(("", "value", "low", "high", "from"), lines, width=width))
    if calibration.besides:
        console.print(heading("Besides, in no device file"))
        console.print()
        lines = [_besides(each) for each in calibration.besides]
        console.print(figures_table(("", "value", "low", "high"), lines, width=width))
    console.print(heading("What the model makes of its own measurements"))
    console.print()
    console.print(_measured(calibration, width))
    _print_doubts(calibration, console)


def _facts(calibration: Calibration) -> Sequence[tuple[str, str]]:
    facts = calibration.facts
    driver = f"driver {facts.driver}, " if facts.driver else ""
    return (
        ("meter", visible(calibration.meter.source)),
        ("software", visible(f"{driver}{facts.software}")),
        ("windows", f"{len(calibration.trials)}, of {len(calibration.explained)} benchmarks"),
        ("nearest", visible(f"{calibration.nearest}, whose figures stand where none could be fitted")),
    )


def _line(row: Row, nearest: str) -> Line:
    name, cells = _cells(row.name, (row.coefficient.value, row.coefficient.low, row.coefficient.high))
    origin = visible(nearest) if row.origin == "shipped" else row.origin
    return Line(cells=(name, *cells, origin), below="" if row.doubt == NOT_RUN else visible(row.doubt))


def _besides(fitted: Fitted) -> Line:
    name, cells = _cells(fitted.term, (fitted.value, fitted.low, fitted.high))
    return Line(cells=(name, *cells), below=visible(fitted.doubt))


def _cells(name: str, figures: Sequence[float]) -> tuple[str, tuple[str, ...]]:
    """``matrix float16, pJ/FLOP`` and the figures in that unit."""
    for ending, spelled, unit, factor in _SPELLED:
        before, found, after = name.partition(ending)
        if found:
            return f"{before}{spelled}{after}, {unit}", tuple(_short(each * factor) for each in figures)
    raise ValueError(f"no unit is known for {name!r}")


def _short(number: float) -> str:
    return f"{number:.0f}" if abs(number) >= 1000 else f"{number:.3g}"


def _measured(calibration: Calibration, width: int) -> Text:
    lines = [
        Line(
            cells=(
                visible(each.benchmark),
                str(each.readings),
                figure(each.duration_s, "s"),
                f"{each.power_w:.4g} W",
                f"{each.error:+.1%}",
            )
        )
        for each in calibration.explained
    ]
    table = figures_table(("benchmark", "windows", "each", "power", "model"), lines, width=width)
    summary = f"error: median {calibration.median_error:.1%}, worst {calibration.worst_error:+.1%}\n"
    return table.append(summary)


def _print_doubts(calibration: Calibration, console: Console) -> None:
    sentences = [*calibration.warnings]
    sentences += [
        f"{each.benchmark!r}: {each.windows} of {each.of} windows were not read: {each.gap}"
        for each in calibration.left_out
    ]
    if sentences:
        console.print(heading("Doubts"))
        console.print(Padding(Text("\n".join(visible(each) for each in sentences)), (1, 0, 1, 3)))
