"""Where reports are printed: no markup is parsed, and colour is for terminals only."""

from collections.abc import Sequence
from typing import IO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

NARROWEST = 80
WIDE = 120  # from here on, tables say more


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


def figures_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    text: Sequence[str],
    width: int,
    total: bool = False,
) -> Table:
    """Columns of figures stand to the right and are never cut; those of ``text`` share what is left.

    ``total`` sets the last row apart: the others add up to it.
    """
    gap = 2 if width >= WIDE else 1
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, gap, 0, 0), show_edge=False)
    longest = [max(len(row[k]) for row in (columns, *rows)) for k in range(len(columns))]
    figures = sum(n for n, name in zip(longest, columns, strict=True) if name not in text)
    between = (gap + 1) * (len(columns) - 1)  # the box adds a blank to the padding
    rest = max((width - figures - between) // max(len(text), 1), 8)
    for needed, name in zip(longest, columns, strict=True):
        if name in text:
            table.add_column(name, width=min(needed, rest), overflow="ellipsis", no_wrap=True)
        else:
            table.add_column(name, width=needed, justify="right", no_wrap=True)
    for row in rows[:-1] if total else rows:
        table.add_row(*row)
    if total:
        table.add_section()
        table.add_row(*rows[-1], style="bold")
    return table


def heading(text: str) -> Text:
    return Text(text, style="bold underline")
