"""How far a recording is: a bar on a terminal, nothing anywhere else."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from magneton.record.progress import NoProgress
from magneton.record.progress import Progress as ReportsProgress
from magneton.report.escape import visible


class Bar:
    """Moves the only task of a rich progress display, which shows once there is something to show.

    Before that, the user may be asked something: a display would draw over the question.
    """

    def __init__(self, display: Progress) -> None:
        self._display = display
        self._task = display.add_task("", total=None)

    def update(self, done: int, total: int, text: str) -> None:
        self._display.start()  # again is harmless
        self._display.update(self._task, completed=done, total=total, description=visible(text))


@contextmanager
def progress_bar(*, quiet: bool) -> Generator[ReportsProgress, None, None]:
    """On standard error, and gone when the work is over; silent if ``quiet`` or not on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield NoProgress()
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    display = Progress(*columns, console=Console(stderr=True), transient=True)
    try:
        yield Bar(display)
    finally:
        display.stop()
