"""How far a proof is: a bar on a terminal once it takes a while, nothing anywhere else."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock, Timer
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SHOWN_AFTER_S = 2.0

Tell = Callable[[int, int], None]


@contextmanager
def progress_bar(
    what: str, *, stream: IO[str] | None = None, after_s: float = SHOWN_AFTER_S
) -> Generator[Tell | None]:
    """On standard error, and gone when the work is over. None where nobody would see it."""
    seen = sys.stderr if stream is None else stream
    if seen is None or not seen.isatty():
        yield None
        return
    bar = _Bar(what, seen, after_s)
    try:
        yield bar.update
    finally:
        bar.stop()


class _Bar:
    """Appears by itself, so that what never says how far it is is seen to run, too."""

    def __init__(self, what: str, stream: IO[str], after_s: float) -> None:
        self._what = what
        self._stream = stream
        self._lock = Lock()
        self._at: tuple[int, int | None] = (0, None)
        self._shown: tuple[Progress, TaskID] | None = None
        self._over = False
        self._timer = Timer(after_s, self._appear)
        self._timer.daemon = True
        self._timer.start()

    def update(self, done: int, total: int) -> None:
        with self._lock:
            self._at = done, total
            self._draw()

    def stop(self) -> None:
        self._timer.cancel()
        with self._lock:
            self._over = True
            if self._shown is not None:
                self._shown[0].stop()

    def _appear(self) -> None:
        # Only now: most proofs are over sooner than this is imported.
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()
        display = Progress(
            *columns,
            TimeElapsedColumn(),
            console=Console(file=self._stream),
            transient=True,
            refresh_per_second=4,
        )
        with self._lock:
            if not self._over:
                self._shown = display, display.add_task(self._what, total=None)
                display.start()
                self._draw()

    def _draw(self) -> None:
        if self._shown is not None:
            display, task = self._shown
            display.update(task, completed=self._at[0], total=self._at[1])
