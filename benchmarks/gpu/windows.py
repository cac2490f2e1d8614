"""Three ways to read what one execution costs: a long counter window, a plain one, and the meter's.

*Long*: the work goes on and on while the counter is watched at two moments only, seconds apart. Power between
two of its changes, times the time that an execution takes in the loop, is what all else is held against:

    counter    |...|   |   (nobody looks)   |   |...|
    work     ##########################################
                   first                    last

*Plain*: what a script without care does: read, work, wait, read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from gpu.bench import Bench, Subject
from gpu.budget import LONGEST_PAUSE_S, Lengths

from magneton.errors import MagnetonError
from magneton.meters.clock import Clock
from magneton.meters.meter import Meter, Reading

SETTING_UP = 3  # executions
BATCH_S = 0.05  # of executions that are queued before the board is waited for
STILL_S = 2.0  # a counter that has not changed for so long does not


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long an execution takes in a loop."""

    execution_s: float

    def times(self, length_s: float) -> int:
        return max(1, round(length_s / self.execution_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class LongWindow:
    """Between two changes of the counter. None for an execution where nothing was executed: at rest."""

    duration_s: float
    power_w: float
    known_to: float  # how far its ends may be off, relative
    execution_s: float | None
    execution_j: float | None


class Seeker:
    """Looks for a change of the counter, lets ``length_s`` pass, and looks for another one."""

    def __init__(self, read_j: Callable[[], float], clock: Clock, length_s: float, poll_s: float) -> None:
        self.length_s = length_s
        self.poll_s = poll_s
        self._read_j = read_j
        self._clock = clock
        self._before_j: float | None = None
        self._looking_since_s = 0.0
        self.edges: list[tuple[float, float]] = []  # seconds, joules

    @property
    def done(self) -> bool:
        return len(self.edges) == 3

    def look(self) -> float:
        """The first change may have been published late: the second is the start."""
        if self.done:
            return self.length_s
        now_s, energy_j = self._clock.now_s(), self._read_j()
        before_j, self._before_j = self._before_j, energy_j
        if before_j is None:
            self._looking_since_s = now_s
        elif energy_j != before_j:
            self.edges.append((now_s, energy_j))
            if len(self.edges) == 2:
                self._before_j = None
                return self.length_s
            self._looking_since_s = now_s
        elif now_s - self._looking_since_s > STILL_S:
            raise MagnetonError(
                f"the energy counter did not change for {STILL_S:g} s", hint="see what magneton doctor says"
            )
        return self.poll_s


def pace_of(bench: Bench, subject: Subject, length_s: float) -> Pace:
    """Warms up for about ``length_s``, and tells how fast the work went in the second half.

    The first executions load kernels and do not count.
    """
    _timed(bench, lambda: subject.run(SETTING_UP))
    done, took_s = 1, _timed(bench, lambda: subject.run(1))
    while took_s < length_s / 2:
        done = max(done + 1, min(10 * done, round(done * length_s / 2 / max(took_s, 1e-9))))
        took_s = _timed(bench, lambda times=done: subject.run(times))
    return Pace(execution_s=took_s / done)


def long_window(bench: Bench, seeker: Seeker, subject: Subject | None, pace: Pace | None) -> LongWindow:
    """Over ``subject``, executed all the while; over the board at rest where it is None."""
    clock = bench.clock
    batch = 0 if pace is None else pace.times(BATCH_S)
    done, began_s = 0, clock.now_s()
    watch = clock.watch(seeker.look)
    try:
        while not seeker.done and clock.now_s() - began_s < seeker.length_s + 4 * STILL_S:
            if subject is None:
                clock.sleep(BATCH_S)
                continue
            subject.run(batch)
            bench.synchronise()
            done += batch
    finally:
        took_s = clock.now_s() - began_s
        watch.stop()
    return _between(seeker, took_s / done if done else None)


def _between(seeker: Seeker, execution_s: float | None) -> LongWindow:
    if not seeker.done:
        raise MagnetonError(
            "the energy counter stopped to change", hint="see what magneton doctor says of the board"
        )
    (start_s, start_j), (stop_s, stop_j) = seeker.edges[1:]
    if stop_j <= start_j:
        raise MagnetonError("the energy counter ran backwards", hint="was the driver loaded anew meanwhile?")
    duration_s = stop_s - start_s
    power_w = (stop_j - start_j) / duration_s
    return LongWindow(
        duration_s=duration_s,
        power_w=power_w,
        known_to=2 * seeker.poll_s / duration_s,
        execution_s=execution_s,
        execution_j=None if execution_s is None else power_w * execution_s,
    )


def plain_windows(
    bench: Bench, read_j: Callable[[], float], subject: Subject, pace: Pace, lengths: Lengths, *, seed: int
) -> tuple[list[float], list[float]]:
    """Joules of an execution by windows of ``plain_s``, and by windows around a single one."""
    pauses = Random(seed)
    times = pace.times(lengths.plain_s)
    many = [_plain(bench, read_j, subject, times, pauses) for _ in range(lengths.plain_windows)]
    single = [_plain(bench, read_j, subject, 1, pauses) for _ in range(lengths.plain_windows)]
    return many, single


def _plain(bench: Bench, read_j: Callable[[], float], subject: Subject, times: int, pauses: Random) -> float:
    bench.clock.sleep(pauses.uniform(0, LONGEST_PAUSE_S))
    before_j = read_j()
    subject.run(times)
    bench.synchronise()
    return (read_j() - before_j) / times


def metered(bench: Bench, meter: Meter, subject: Subject, times: int) -> Reading:
    """One window of the meter over so many executions."""
    meter.begin(times)
    subject.run(times)
    bench.synchronise()
    return meter.end()


def watched_and_not(
    bench: Bench, meter: Meter, subject: Subject, times: int, pairs: int
) -> tuple[list[float], list[float]]:
    """Seconds that the work takes while the meter looks, and while nobody does, in turns."""
    with_meter: list[float] = []
    without: list[float] = []

    def watched() -> None:
        meter.begin(times)
        with_meter.append(_timed(bench, lambda: subject.run(times)))
        reading = meter.end()
        if reading.energy_j is None:
            raise MagnetonError(f"the meter did not read: {reading.gap}", hint="run it again")

    def unwatched() -> None:
        without.append(_timed(bench, lambda: subject.run(times)))

    for pair in range(pairs):
        for turn in (watched, unwatched) if pair % 2 == 0 else (unwatched, watched):
            turn()
    return with_meter, without


def _timed(bench: Bench, work: Callable[[], None]) -> float:
    began_s = bench.clock.now_s()
    work()
    bench.synchronise()
    return bench.clock.now_s() - began_s
