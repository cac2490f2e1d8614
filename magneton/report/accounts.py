"""The tables of a comparison: the totals of each phase, and the rows that add up to them."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from magneton.compare.model import Comparison, PhaseTotals, Row, SideCost
from magneton.profile.origin import Unit
from magneton.report.console import WIDE, figures_table, heading
from magneton.report.escape import visible
from magneton.report.quantities import figure, quantity, ratio
from magneton.report.work import one_side, operators_line, reason_line, row_title


def print_totals(comparison: Comparison, console: Console) -> None:
    """The clean pass: what a whole step costs and how long it lasts."""
    name = "energy" if comparison.unit == "J" else "count"
    rows: list[tuple[str, ...]] = []
    for total in comparison.totals:
        phase = visible(total.phase, longest=30)
        costs = (quantity(cost, comparison.unit) for cost in (total.baseline_cost, total.candidate_cost))
        rows.append((f"{phase} {name}", *costs, ratio(total.cost_ratio)))
        durations = (quantity(each, "s") for each in (total.baseline_duration_s, total.candidate_duration_s))
        rows.append((f"{phase} time", *durations, ratio(total.duration_ratio)))
    columns = ("per step", "baseline", "candidate", "candidate / baseline")
    console.print(figures_table(columns, rows, text=("per step",), width=console.width))
    console.print()


def print_rows(comparison: Comparison, console: Console, top: int) -> None:
    """Where each phase's step goes, region by region; at most ``top`` regions, the rest summed."""
    for total in comparison.totals:
        rows = [row for row in comparison.rows if row.phase == total.phase]
        console.print(heading(f"Where a step of {visible(total.phase)} goes, by difference"))
        console.print()
        console.print(_rows_table(rows, total, comparison.unit, console.width, top))
        console.print()


def _rows_table(rows: Sequence[Row], total: PhaseTotals, unit: Unit, width: int, top: int) -> Table:
    wide = width >= WIDE
    columns = ("work", *(("operators",) if wide else ()), "times", "baseline", "candidate", "excess", "ratio")
    spends = [row for row in rows if row.kind in ("region", "leftover") and not _free(row)]
    lines = [_cells(row, unit, wide=wide) for row in spends[:top]]
    if len(spends) > top:
        lines.append(_rest(spends[top:], unit, wide=wide))
    lines += [_cells(row, unit, wide=wide) for row in rows if row.kind in ("unread", "residual")]
    lines.append(_whole(total, unit, wide=wide))
    return figures_table(columns, lines, text=columns[: 2 if wide else 1], width=width, total=True)


def _whole(total: PhaseTotals, unit: Unit, *, wide: bool) -> list[str]:
    one, other = (
        None if cost is None else cost.value for cost in (total.baseline_cost, total.candidate_cost)
    )
    excess = None if one is None or other is None else other - one
    figures = (figure(one, unit), figure(other, unit), _signed(excess, unit), ratio(total.cost_ratio))
    return ["whole step", *([""] if wide else []), "", *figures]


def _free(row: Row) -> bool:
    """Views and the like: nothing to account for."""
    costs = [side.cost for side in (row.baseline, row.candidate) if side is not None]
    return all(cost is not None and cost.value == 0 for cost in costs)


def _cells(row: Row, unit: Unit, *, wide: bool) -> list[str]:
    title = row_title(row, 40 if wide else 21)
    work = one_side(row).work if row.kind != "residual" else None
    operators = [operators_line(work) if work is not None else ""] if wide else []
    if wide and row.reason is not None:
        operators = [f"{operators[0]} ({reason_line(row)})"]
    return [
        title,
        *operators,
        str(row.repeats) if row.kind == "region" else str(_executions(row)) if row.kind == "unread" else "",
        _cost(row.baseline, unit),
        _cost(row.candidate, unit),
        _signed(row.excess, unit),
        ratio(row.ratio),
    ]


def _executions(row: Row) -> int:
    return sum(side.executions for side in (row.baseline, row.candidate) if side is not None)


def _rest(rows: Sequence[Row], unit: Unit, *, wide: bool) -> list[str]:
    """One line for the rows that are not shown, so that the lines still add up."""
    excess = sum(row.excess or 0.0 for row in rows)
    return [
        f"{len(rows)} more rows",
        *([""] if wide else []),
        "",
        figure(_sum(row.baseline for row in rows), unit),
        figure(_sum(row.candidate for row in rows), unit),
        _signed(excess, unit),
        "",
    ]


def _sum(sides: Iterable[SideCost | None]) -> float:
    return sum(side.cost.value for side in sides if side is not None and side.cost is not None)


def _cost(side: SideCost | None, unit: Unit) -> str:
    return figure(None if side is None or side.cost is None else side.cost.value, unit)


def _signed(excess: float | None, unit: Unit) -> str:
    text = figure(excess, unit)
    return f"+{text}" if excess is not None and excess > 0 else text
