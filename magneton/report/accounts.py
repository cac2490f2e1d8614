"""The tables of a comparison: the totals of each phase, and the rows that add up to them."""

from collections.abc import Iterable, Sequence

from rich.console import Console

from magneton.compare.model import Beside, Comparison, PhaseTotals, Row, SideCost
from magneton.profile.origin import Unit
from magneton.report.console import Line, figures_table, heading
from magneton.report.escape import visible
from magneton.report.quantities import figure, quantity, ratio, signed
from magneton.report.scopes import residual_caption, scope_lines
from magneton.report.work import row_title, work_line

TITLE = 22  # what 80 columns leave beside the figures


def print_totals(comparison: Comparison, console: Console) -> None:
    """The clean pass: what a whole step costs and how long it lasts."""
    name = "energy" if comparison.unit == "J" else "count"
    lines: list[Line] = []
    for total in comparison.totals:
        phase = visible(total.phase, longest=30)
        costs = (quantity(cost, comparison.unit) for cost in (total.baseline_cost, total.candidate_cost))
        lines.append(Line(cells=(f"{phase} {name}", *costs, ratio(total.cost_ratio))))
        durations_s = (total.baseline_duration_s, total.candidate_duration_s)
        if any(durations_s):  # counts and models of a device take no time
            durations = (quantity(each, "s") for each in durations_s)
            lines.append(Line(cells=(f"{phase} time", *durations, ratio(total.duration_ratio))))
        lines += _beside_lines(f"{phase} net", total.net, "above the device at rest, whatever it does")
        lines += _beside_lines(f"{phase} host", total.host, "spent by the host meanwhile, in no other line")
    columns = ("per step", "baseline", "candidate", "ratio")
    console.print(figures_table(columns, lines, width=console.width))


def _beside_lines(title: str, beside: Beside | None, meaning: str) -> list[Line]:
    """A line for what is told beside the energy of a step, where it was measured."""
    if beside is None:
        return []
    figures = (quantity(each, "J") for each in (beside.baseline, beside.candidate))
    return [Line(cells=(title, *figures, ratio(beside.ratio)), below=meaning)]


def print_rows(comparison: Comparison, console: Console, top: int) -> None:
    """Where each phase's step goes, region by region; at most ``top`` regions, the rest summed."""
    columns = ("work", "times", "baseline", "candidate", "excess", "ratio")
    for total in comparison.totals:
        rows = [row for row in comparison.rows if row.phase == total.phase]
        console.print(heading(f"Where a step of {visible(total.phase)} goes, by difference"))
        console.print()
        lines = _lines(rows, total, comparison.unit, top, console.width - 80 + TITLE)
        console.print(figures_table(columns, lines, width=console.width, total=True))


def _lines(rows: Sequence[Row], total: PhaseTotals, unit: Unit, top: int, longest: int) -> list[Line]:
    spends = [row for row in rows if row.kind in ("region", "leftover") and not _free(row)]
    lines = [_line(row, unit, longest) for row in spends[:top]]
    if len(spends) > top:
        lines.append(_rest(spends[top:], unit))
    lines += [_line(row, unit, longest) for row in rows if row.kind == "unread"]
    for row in (row for row in rows if row.kind == "residual"):
        lines += [_line(row, unit, longest), *scope_lines(row, unit, top)]
    return [*lines, _whole(total, unit)]


def _line(row: Row, unit: Unit, longest: int) -> Line:
    times = {"region": str(row.repeats), "leftover": str(row.repeats), "unread": str(_executions(row))}
    figures = (_cost(row.baseline, unit), _cost(row.candidate, unit), signed(row.excess, unit))
    return Line(
        cells=(row_title(row, longest), times.get(row.kind, ""), *figures, ratio(row.ratio)),
        below=work_line(row) or residual_caption(row),
    )


def _whole(total: PhaseTotals, unit: Unit) -> Line:
    one, other = (
        None if cost is None else cost.value for cost in (total.baseline_cost, total.candidate_cost)
    )
    excess = None if one is None or other is None else other - one
    figures = (figure(one, unit), figure(other, unit), signed(excess, unit), ratio(total.cost_ratio))
    return Line(cells=("whole step", "", *figures))


def _rest(rows: Sequence[Row], unit: Unit) -> Line:
    """One line for the rows that are not shown, so that the lines still add up."""
    sums = _sum(row.baseline for row in rows), _sum(row.candidate for row in rows)
    excess = signed(sum(row.excess or 0.0 for row in rows), unit)
    return Line(cells=(f"{len(rows)} more rows", "", *(figure(each, unit) for each in sums), excess, ""))


def _free(row: Row) -> bool:
    """Views and the like: nothing to account for."""
    costs = [side.cost for side in (row.baseline, row.candidate) if side is not None]
    return all(cost is not None and cost.value == 0 for cost in costs)


def _executions(row: Row) -> int:
    return sum(side.executions for side in (row.baseline, row.candidate) if side is not None)


def _sum(sides: Iterable[SideCost | None]) -> float:
    return sum(side.cost.value for side in sides if side is not None and side.cost is not None)


def _cost(side: SideCost | None, unit: Unit) -> str:
    return figure(None if side is None or side.cost is None else side.cost.value, unit)
