"""The survey: how long a step stays in each scope of its system, operators and all that lies between them.

In: steps with nothing else attached, in the user's own configuration. Out: one row per scope. A timer
interrupts the main thread; its handler looks which function is running.

    timer     |       |       |       |       |       |       |       |       |
    Python    schedule | prepare | one long operator       | sample | ...
    handled   ^       ^         ^                           ^  ^       ^
    ticks     1       1         1            3: the operator's  1       1

Python runs a handler between two of its instructions, so what a long operator swallows is told once, when
it returns to the function that called it. It then stands for every tick that fell due meanwhile: each tick
counts for what was running when it fell due. (To count the time since the last sample instead would give
what an operator leaves of a function after it to that operator.) The timer starts anew with each step, each
time at another moment within a tick: a step that repeats itself is not always looked at in the same places.
"""

import math
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from types import FrameType

from magneton.profile.model import Doubt, ScopeTime
from magneton.record.journal import Journal
from magneton.record.scopes import TO_HOST, Scopes
from magneton.record.windows import nothing_to_wait_for
from magneton.systems.running import RunningSystem
from magneton.workload import Phase

TICK_S = 0.003  # being interrupted takes some 70 µs in an engine: less than 3 % of that
GOLDEN = (
    math.sqrt(5) - 1
) / 2  # multiples of it, less their whole parts, spread evenly however many there are


def survey(
    system: RunningSystem,
    phase: Phase,
    length_s: float,
    table: Mapping[str, str],
    journal: Journal,
    *,
    synchronise: Callable[[], None] = nothing_to_wait_for,
) -> None:
    """Write down where steps of ``phase`` that last ``length_s`` spend it, or a doubt that says why not."""
    obstacle = _obstacle()
    if obstacle:
        text = f"where {phase} spends its time between operators was not sampled: {obstacle}"
        journal.append(Doubt(kind="not-surveyed", text=text))
        return
    sampler = Sampler(table)
    with sampler.listening():
        while sampler.duration_s < length_s:
            system.rewind(phase)
            synchronise()
            with sampler.sampling():
                system.step(phase)
                sampler.wait(synchronise)
    for row in sampler.rows(phase):
        journal.append(row)


def _obstacle() -> str:
    """Why this thread cannot be interrupted by a timer of ours; "" where it can."""
    if not hasattr(signal, "setitimer"):
        return "this platform has no interval timer"
    if threading.current_thread() is not threading.main_thread():
        return "steps do not run in the main thread"
    if signal.getsignal(signal.SIGALRM) not in (signal.SIG_DFL, signal.SIG_IGN) or any(
        signal.getitimer(signal.ITIMER_REAL)
    ):
        return "the system uses the interval timer itself"
    return ""


class Sampler:
    """Counts ticks by scope while steps run, and the looks at the stack that told them.

    Ticks that one look tells are no independent samples: an operator swallowed them, or a neighbour on the
    machine that had the processor.
    """

    def __init__(
        self,
        table: Mapping[str, str],
        *,
        tick_s: float = TICK_S,
        clock_s: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._scopes = Scopes({**table, Sampler.wait.__qualname__: TO_HOST})
        self._tick_s = tick_s
        self._clock_s = clock_s
        self._ticks: Counter[str] = Counter()
        self._samples: Counter[str] = Counter()
        self._steps = 0
        self.duration_s = 0.0
        self._first_s = 0.0
        self._told = 0

    @contextmanager
    def listening(self) -> Generator[None]:
        """Take the timer's signal; afterwards it is whose it was."""
        before = signal.signal(signal.SIGALRM, self._tick)
        signal.siginterrupt(signal.SIGALRM, False)  # calls into the system that are under way go on
        try:
            yield
        finally:
            signal.signal(signal.SIGALRM, before)

    @contextmanager
    def sampling(self) -> Generator[None]:
        """One step runs inside. Its first tick falls due after more than none and at most a whole one."""
        offset_s = (1.0 - self._steps * GOLDEN % 1.0) * self._tick_s
        self._steps += 1
        self._told = 0
        started_s = self._clock_s()
        self._first_s = started_s + offset_s
        signal.setitimer(signal.ITIMER_REAL, offset_s, self._tick_s)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            self.duration_s += self._clock_s() - started_s

    def wait(self, synchronise: Callable[[], None]) -> None:
        """For a device that still works on the step."""
        synchronise()

    def rows(self, phase: Phase) -> tuple[ScopeTime, ...]:
        """One per scope, the longest first. Together they last as long as a step."""
        total = self._ticks.total()
        return tuple(
            ScopeTime(
                phase=phase,
                scope=scope,
                duration_s=self.duration_s / self._steps * ticks / total,
                samples=self._samples[scope],
            )
            for scope, ticks in self._ticks.most_common()
        )

    def _tick(self, _number: int, frame: FrameType | None) -> None:
        due = math.floor((self._clock_s() - self._first_s) / self._tick_s) + 1
        if due > self._told:
            scope = self._scopes.of(frame)
            self._ticks[scope] += due - self._told
            self._samples[scope] += 1
            self._told = due
