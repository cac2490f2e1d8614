"""The time that meters live in, and how they look at a sensor while other work goes on.

One clock tells a meter when something happened, how to wait, and how to be called meanwhile: on a machine
that is the system's monotonic clock and a thread, in a simulation virtual time and the simulation itself.
"""

import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Protocol


class Watch(Protocol):
    """A look that repeats itself."""

    def stop(self) -> None:
        """When this returns, no look is under way and none will come."""
        ...


class Clock(Protocol):
    """Monotonic seconds from an arbitrary start."""

    def now_s(self) -> float: ...

    def sleep(self, duration_s: float) -> None: ...

    def watch(self, look: Callable[[], float]) -> Watch:
        """Call ``look`` at once and then again and again; it returns after how many seconds to look next."""
        ...


class SystemClock:
    """The machine's own."""

    def now_s(self) -> float:
        return time.monotonic()

    def sleep(self, duration_s: float) -> None:
        time.sleep(duration_s)

    def watch(self, look: Callable[[], float]) -> Watch:
        return _ThreadWatch(look)


class _ThreadWatch:
    """Looks from a thread of its own. What a look raises is raised by ``stop``."""

    def __init__(self, look: Callable[[], float]) -> None:
        self._look = look
        self._stopping = Event()
        self._problem: BaseException | None = None
        self._thread = Thread(target=self._run, name="magneton-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        if self._problem is not None:
            raise self._problem

    def _run(self) -> None:
        try:
            while not self._stopping.wait(self._look()):
                pass
        except BaseException as problem:  # noqa: BLE001 - handed on to the thread that stops the watch
            self._problem = problem
