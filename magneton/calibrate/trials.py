"""Running the benchmarks under a meter: rounds in random order, each window warmed up, gaps tried again.

In: benchmarks, a workbench, a meter that is open. Out: one ``Trial`` a window, appended as soon as it is
read, so that an interruption loses the window that was open and nothing else.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from magneton.calibrate.workbench import Benchmark, Workbench
from magneton.errors import MagnetonError
from magneton.meters.clock import Clock
from magneton.meters.meter import Meter, Reading, State
from magneton.meters.sensors import SensorUnusable
from magneton.record.progress import Progress

LEAST_ROUNDS, MOST_ROUNDS = 3, 10
WARM_UP_S = 1.0
RETRIES = 2  # of a window that was not read
GIVE_UP = 4  # trials one after the other of which none was read: the sensor is gone
_MARGIN = 1.1  # on the shortest window: how long a repetition takes is known to a few per cent
_SHORTEST_S = 0.5
_AROUND_S = 0.5  # what opening and closing a window takes beside
_SIZING_S = 0.2
_MOST_REPETITIONS = 2**40


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One window. ``energy_j`` is None where no attempt was read, and ``gap`` says why the last was not."""

    benchmark: str
    round: int
    repetitions: int
    duration_s: float
    energy_j: float | None
    gap: str = ""
    throttle: tuple[str, ...] = ()
    foreign: int = 0


def window_s(meter: Meter) -> float:
    return max(_MARGIN * meter.shortest_window_s, _SHORTEST_S)


def needed_s(benchmarks: Sequence[Benchmark], meter: Meter) -> float:
    """How long one round takes."""
    return len(benchmarks) * (WARM_UP_S + window_s(meter) + _AROUND_S)


def measure(
    benchmarks: Sequence[Benchmark],
    workbench: Workbench,
    meter: Meter,
    clock: Clock,
    *,
    budget_s: float,
    seed: int,
    progress: Progress,
    trials: list[Trial],
) -> None:
    """As many rounds as fit in the budget, three at least, into ``trials``."""
    round_s = needed_s(benchmarks, meter)
    if LEAST_ROUNDS * round_s > budget_s:
        raise MagnetonError(
            f"{LEAST_ROUNDS} rounds of {len(benchmarks)} benchmarks take {LEAST_ROUNDS * round_s:.0f} s, "
            f"more than the budget of {budget_s:.0f} s",
            hint=f"--budget {math.ceil(LEAST_ROUNDS * round_s / 60) * 60}",
        )
    rounds = min(int(budget_s / round_s), MOST_ROUNDS)
    shuffled = random.Random(seed)
    bench = _Bench(workbench=workbench, meter=meter, clock=clock)
    began_s = clock.now_s()
    for number in range(rounds):
        if number >= LEAST_ROUNDS and clock.now_s() - began_s > budget_s - round_s:
            return
        for benchmark in shuffled.sample(benchmarks, len(benchmarks)):
            progress.update(len(trials), rounds * len(benchmarks), benchmark.name)
            trials.append(bench.trial(benchmark, number))
            _refuse_silence(trials[-GIVE_UP:])


def _refuse_silence(latest: Sequence[Trial]) -> None:
    """A sensor that was lost would be asked in vain for the rest of the budget."""
    if len(latest) == GIVE_UP and all(trial.energy_j is None for trial in latest):
        raise SensorUnusable(
            f"{GIVE_UP} benchmarks one after the other were not read, each tried {RETRIES + 1} times: "
            f"{latest[-1].gap}",
            hint="magneton doctor says what the sensor of this device can do",
        )


class _Bench:
    """A workbench under a meter, which remembers how often each benchmark has to be repeated."""

    def __init__(self, *, workbench: Workbench, meter: Meter, clock: Clock) -> None:
        self._workbench = workbench
        self._meter = meter
        self._clock = clock
        self._window_s = window_s(meter)
        self._repetition_s: dict[str, float] = {}

    def trial(self, benchmark: Benchmark, number: int) -> Trial:
        repetitions, reading = self._window(benchmark)
        for _ in range(RETRIES):
            if reading.energy_j is None:
                repetitions, reading = self._window(benchmark)
        states = [state for state in (reading.before, reading.after) if state is not None]
        return Trial(
            benchmark=benchmark.name,
            round=number,
            repetitions=repetitions,
            duration_s=reading.duration_s,
            energy_j=reading.energy_j,
            gap=(reading.gap or "no reading") if reading.energy_j is None else "",
            throttle=_reasons(states),
            foreign=max((state.foreign or 0 for state in states), default=0),
        )

    def _window(self, benchmark: Benchmark) -> tuple[int, Reading]:
        self._warm_up(benchmark)
        repetitions = self._repetitions(benchmark, self._window_s)
        self._workbench.synchronise()
        self._meter.begin(repetitions)
        self._workbench.run(benchmark, repetitions)
        self._workbench.synchronise()
        reading = self._meter.end()
        if reading.duration_s > 0:  # the longest look at it so far
            self._repetition_s[benchmark.name] = reading.duration_s / repetitions
        return repetitions, reading

    def _warm_up(self, benchmark: Benchmark) -> None:
        if benchmark.name not in self._repetition_s:
            self._repetition_s[benchmark.name] = self._sized_s(benchmark)
        self._duration_s(benchmark, self._repetitions(benchmark, WARM_UP_S))

    def _sized_s(self, benchmark: Benchmark) -> float:
        """How long a repetition takes; the first one also makes operands and is left out."""
        self._duration_s(benchmark, 1)
        repetitions = 1
        while True:
            took_s = self._duration_s(benchmark, repetitions)
            if took_s >= _SIZING_S:
                return took_s / repetitions
            if repetitions >= _MOST_REPETITIONS:
                raise MagnetonError(
                    f"{benchmark.name!r} takes no time", hint="is the clock of this machine running?"
                )
            repetitions *= 2

    def _repetitions(self, benchmark: Benchmark, length_s: float) -> int:
        return max(math.ceil(length_s / self._repetition_s[benchmark.name]), 1)

    def _duration_s(self, benchmark: Benchmark, repetitions: int) -> float:
        began_s = self._clock.now_s()
        self._workbench.run(benchmark, repetitions)
        self._workbench.synchronise()
        return self._clock.now_s() - began_s


def _reasons(states: Sequence[State]) -> tuple[str, ...]:
    return tuple(sorted({reason for state in states for reason in state.throttle}))
