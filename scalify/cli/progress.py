"""How far a proof is: a bar on a terminal once it takes a while, nothing anywhere else."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import monotonic

SHOWN_AFTER_S = 2.0

Progress = Callable[[int, int], None]


@contextmanager
def progress_bar(what: str) -> Generator[Progress | None]:
    """On standard error, and gone when the work is over. None where nobody would see it."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(what)
    try:
        yield bar.update
    finally:
        bar.stop()


class _Bar:
    def __init__(self, what: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = TextColumn(what, markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        self._display = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._display.add_task(what, total=None)
        self._from_s = monotonic() + SHOWN_AFTER_S

    def update(self, done: int, total: int) -> None:
        if monotonic() >= self._from_s:
            self._display.start()  # again is harmless
        self._display.update(self._task, completed=done, total=total)

    def stop(self) -> None:
        self._display.stop()
