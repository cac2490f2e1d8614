"""Replay for a meter that cannot see one operator: each key is repeated until its window is long enough.

In: each operator of one step as it is about to run. Out: a ``ReplayReading`` for each key, per execution, or
the reason why there is none. The repetitions come first, on the real inputs; the step's own execution
follows, with everything as it was.

    first of its key    warm up | [op op op ... op] (window) | put back | op (the step's own)
    reads and writes    warm up | [op restore op restore ...] | [restore restore ...] | op

The cost of restoring is read in a window of its own and taken off.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from magneton.meters.meter import Meter, Reading
from magneton.profile.model import KeyId, ReplayReading
from magneton.record.torch.repeating import Restore, reason_to_skip, same_draws_after

OUT_OF_TIME = "time budget"
WARM_UP = 0.5  # of a window: clocks and temperature settle under the operator's own load
MARGIN = 1.1  # a window is planned this much longer than the meter needs
CLOCK_TICK_S = 1e-9  # no execution takes less
ATTEMPTS = 4  # windows that turned out too short before the key is given up


def seconds_per_key(meter: Meter) -> float:
    """How long one key takes that needs no restoring."""
    return meter.shortest_window_s * (WARM_UP + MARGIN)


def dearest(costs: Iterable[tuple[KeyId, float]], count: int) -> Collection[KeyId]:
    """The ``count`` keys whose executions cost most together; of equals, those that came first."""
    total: defaultdict[KeyId, float] = defaultdict(float)
    for key_id, cost in costs:
        total[key_id] += cost
    return frozenset(sorted(total, key=lambda key_id: -total[key_id])[:count])


class LoopReader:
    """Reads each key once, until ``budget_s`` is used up. ``chosen``: keys worth the time; None for all."""

    def __init__(
        self,
        meter: Meter,
        synchronise: Callable[[], None],
        *,
        budget_s: float,
        chosen: Collection[KeyId] | None = None,
        clock_s: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._meter = meter
        self._synchronise = synchronise
        self._chosen = chosen
        self._clock_s = clock_s
        self._until_s = clock_s() + budget_s
        self._read: dict[KeyId, tuple[Reading, int]] = {}
        self._skipped: dict[KeyId, str] = {}

    def execute(self, key_id: KeyId, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if key_id not in self._read and key_id not in self._skipped:
            reason = self._reason(key_id, func, args, kwargs)
            if reason is None:
                with same_draws_after(func, args, kwargs):
                    self._measure(key_id, func, args, kwargs)
            else:
                self._skipped[key_id] = reason
        return func(*args, **kwargs)

    def skipped(self) -> Mapping[KeyId, str]:
        return self._skipped

    def readings(self, round: int) -> Iterator[ReplayReading]:
        for key_id, (reading, executions) in self._read.items():
            yield ReplayReading(
                key_id=key_id,
                round=round,
                executions=executions,
                duration_s=reading.duration_s,
                energy_j=reading.energy_j,
            )

    def _reason(self, key_id: KeyId, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        reason = reason_to_skip(func, args, kwargs)
        if reason is not None:
            return reason
        if self._chosen is not None and key_id not in self._chosen:
            return OUT_OF_TIME
        late = self._clock_s() + seconds_per_key(self._meter) > self._until_s
        return OUT_OF_TIME if late else None

    def _measure(self, key_id: KeyId, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        restore = Restore(func, args, kwargs)

        def once() -> None:
            func(*args, **kwargs)
            if restore:
                restore()

        reading, executions = self._per_execution(once)
        if restore:
            reading = difference(reading, self._per_execution(restore)[0])
        if reading.duration_s > 0:
            self._read[key_id] = (reading, executions)
        else:
            self._skipped[key_id] = "lost in the cost of restoring its arguments"

    def _per_execution(self, once: Callable[[], object]) -> tuple[Reading, int]:
        """One window over as many executions as the meter needs, per execution, and how many they were."""
        wanted_s = self._meter.shortest_window_s * MARGIN
        executions = self._enough(once, wanted_s)
        reading = self._window(once, executions)
        for _ in range(ATTEMPTS):
            if reading.duration_s >= self._meter.shortest_window_s:
                break
            executions *= 2
            reading = self._window(once, executions)
        long_enough = reading.duration_s >= self._meter.shortest_window_s
        energy_j = reading.energy_j if long_enough else None
        if energy_j is not None:
            energy_j /= executions
        return Reading(duration_s=reading.duration_s / executions, energy_j=energy_j), executions

    def _enough(self, once: Callable[[], object], wanted_s: float) -> int:
        """Warm up, and say how many executions fill ``wanted_s``."""
        executions, spent_s = 1, 0.0
        while True:
            start_s = self._clock_s()
            for _ in range(executions):
                once()
            self._synchronise()
            last_s = max(self._clock_s() - start_s, CLOCK_TICK_S)
            spent_s += last_s
            if spent_s >= self._meter.shortest_window_s * WARM_UP:
                return max(1, round(executions * wanted_s / last_s))
            executions *= 2

    def _window(self, once: Callable[[], object], executions: int) -> Reading:
        self._synchronise()
        self._meter.begin()
        for _ in range(executions):
            once()
        self._synchronise()
        return self._meter.end()


def difference(reading: Reading, overhead: Reading) -> Reading:
    """Without ``overhead``. Energy below it is noise, not a reading."""
    energy_j = None
    if reading.energy_j is not None and overhead.energy_j is not None:
        left_j = reading.energy_j - overhead.energy_j
        energy_j = left_j if left_j > 0 else None
    return Reading(duration_s=reading.duration_s - overhead.duration_s, energy_j=energy_j)
