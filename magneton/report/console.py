"""Where reports are printed: no markup is parsed, and colour is for terminals only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

NARROWEST = 80
NARROWEST_TEXT = 8
GAP = 2  # blanks between columns


def console_for(stream: IO[str], width: int | None = None) -> Console:
    """A console on ``stream``; ``width`` None is the terminal's, or 80 where there is none."""
    console = Console(file=stream, width=width, markup=False, highlight=False, emoji=False)
    if width is None and console.width < NARROWEST:
        console.width = NARROWEST
    return console


def facts_table(rows: Sequence[tuple[str, Text | str]]) -> Table:
    """Names on the left, what is to be known about them on the right, wrapped."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(name, text)
    return table


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of a table. ``below`` is text as wide as the console: a second line, or several."""

    cells: tuple[str, ...]
    below: str = ""


def figures_table(columns: Sequence[str], lines: Sequence[Line], *, width: int, total: bool = False) -> Text:
    """A column of text and columns of figures, which stand to the right and are never cut.

    ``total`` sets the last line apart: the others add up to it.
    """
    figures = [
        max(cell_len(row[k]) for row in (columns, *(line.cells for line in lines)))
        for k in range(len(columns))
    ]
    figures[0] = min(figures[0], max(width - sum(figures[1:]) - GAP * (len(columns) - 1), NARROWEST_TEXT))
    rule = "─" * min(sum(figures) + GAP * (len(columns) - 1), width)
    table = Text(f"{_row(columns, figures)}\n{rule}\n")
    for number, line in enumerate(lines, start=1):
        last = total and number == len(lines)
        if last:
            table.append(rule + "\n")
        table.append(_row(line.cells, figures) + "\n", style="bold" if last else "")
        for text in line.below.splitlines():
            table.append("    " + set_cell_size(text, min(cell_len(text), width - 4)) + "\n", style="dim")
    return table


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    text = set_cell_size(cells[0], widths[0])
    figures = (" " * (size - cell_len(cell)) + cell for cell, size in zip(cells[1:], widths[1:], strict=True))
    return (" " * GAP).join((text, *figures)).rstrip()


def heading(text: str) -> Text:
    return Text(text, style="bold underline")
