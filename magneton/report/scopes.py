"""Scopes for people: what lies between operators, and how a step divides into what the system does."""

from collections.abc import Sequence

from rich.console import Console

from magneton.compare.model import Row, ScopeCost, ScopeRow
from magneton.profile.origin import Unit
from magneton.report.console import Line, figures_table, heading
from magneton.report.escape import visible
from magneton.report.quantities import figure, percent, ratio, signed
from magneton.report.summary import PhaseSummary

LONGEST = 30  # characters of a scope's name


def residual_caption(row: Row) -> str:
    """What the lines below a residual are, and how many samples they rest on."""
    if not row.scopes:
        return ""
    counts = [
        sum(side.samples for side in sides if side is not None)
        for sides in ([each.baseline for each in row.scopes], [each.candidate for each in row.scopes])
    ]
    divided = any(_is_divided(side) for each in row.scopes for side in (each.baseline, each.candidate))
    what = "between operators" if divided else "time of the host, which is no share of it"
    return f"{what}, by {counts[0]} and {counts[1]} samples of the stack:"


def scope_lines(row: Row, unit: Unit, top: int) -> list[Line]:
    """One line for each part of a residual; beyond ``top``, the rest in one."""
    lines = [_line(each, unit) for each in row.scopes[:top]]
    rest = row.scopes[top:]
    if rest:
        sums = _sum([each.baseline for each in rest], unit), _sum([each.candidate for each in rest], unit)
        known = [each.excess for each in rest if each.excess is not None]
        excess = signed(sum(known) if known else None, unit)
        lines.append(Line(cells=(f"  {len(rest)} more", "", *sums, excess, "")))
    return lines


def print_scopes(phase: PhaseSummary, unit: Unit, console: Console, top: int) -> None:
    """How a step divides into what the system does, where that was sampled."""
    if not phase.scopes:
        return
    console.print(heading(f"What a step of {visible(phase.phase)} is spent on"))
    console.print()
    lines = [
        Line(
            cells=(
                scope_name(scope.scope),
                percent(scope.share),
                figure(scope.duration_s, "s"),
                figure(scope.attributed, unit),
                figure(None if scope.cost is None else scope.cost.value, unit),
                str(scope.samples),
            )
        )
        for scope in phase.scopes[:top]
    ]
    columns = ("scope", "of its time", "time", "in operators", "between them", "samples")
    console.print(figures_table(columns, lines, width=console.width))
    if len(phase.scopes) > top:
        console.print(f"{len(phase.scopes) - top} more scopes: --top shows them\n")


def scope_name(scope: str) -> str:
    return visible(scope, longest=LONGEST) or "elsewhere"


def _line(row: ScopeRow, unit: Unit) -> Line:
    figures = (_cost(row.baseline, unit), _cost(row.candidate, unit), signed(row.excess, unit))
    return Line(cells=(f"  {scope_name(row.scope)}", "", *figures, ratio(row.ratio)))


def _cost(side: ScopeCost | None, unit: Unit) -> str:
    """The cost between operators, else the time; what was not found may still be a little."""
    if side is None:
        return "-"
    if not side.samples:
        return "not seen"
    if side.cost is None:
        return figure(side.duration_s, "s")
    if side.cost.value == 0 < side.cost.high:
        return f"< {figure(side.cost.high, unit)}"
    return figure(side.cost.value, unit)


def _sum(sides: Sequence[ScopeCost | None], unit: Unit) -> str:
    known = [side for side in sides if side is not None]
    if not known:
        return "-"
    if all(_is_divided(side) for side in known):
        return figure(sum(side.cost.value for side in known if side.cost is not None), unit)
    return figure(sum(side.duration_s or 0.0 for side in known), "s")


def _is_divided(side: ScopeCost | None) -> bool:
    return side is not None and side.cost is not None
