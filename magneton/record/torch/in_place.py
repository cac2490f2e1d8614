"""Replay with a clock fine enough for one operator: the step's own executions are read where they happen.

In: each operator of one step as it is about to run. Out: the result of its one execution; at the end of
the step one ``ReplayReading`` per key, the mean over its executions. Nothing runs twice, so nothing has to
be put back and nothing is skipped, and an operator finds the caches as its predecessors left them. What
the meter itself costs is taken off. docs/decisions/0003-replay.md says why this is no loop.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from magneton.meters.meter import Meter, Reading
from magneton.profile.model import KeyId, ReplayReading

EMPTY_WINDOWS = 101


def empty_window(meter: Meter, synchronise: Callable[[], None]) -> Reading:
    """What the meter reads around nothing: the median of many such windows."""
    readings: list[Reading] = []
    for _ in range(EMPTY_WINDOWS):
        synchronise()
        meter.begin()
        synchronise()
        readings.append(meter.end())
    energies_j = [reading.energy_j for reading in readings if reading.energy_j is not None]
    return Reading(
        duration_s=median(reading.duration_s for reading in readings),
        energy_j=median(energies_j) if energies_j else None,
    )


class InPlaceReader:
    """Reads every execution of every operator in one step."""

    def __init__(self, meter: Meter, synchronise: Callable[[], None]) -> None:
        self._meter = meter
        self._synchronise = synchronise
        self._overhead = empty_window(meter, synchronise)
        self._readings: defaultdict[KeyId, list[Reading]] = defaultdict(list)

    def execute(self, key_id: KeyId, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        meter, synchronise = self._meter, self._synchronise
        synchronise()
        meter.begin()
        result = func(*args, **kwargs)
        synchronise()
        self._readings[key_id].append(meter.end())
        return result

    def skipped(self) -> Mapping[KeyId, str]:
        return {}

    def readings(self, round: int) -> Iterator[ReplayReading]:
        for key_id, readings in self._readings.items():
            yield ReplayReading(
                key_id=key_id,
                round=round,
                executions=len(readings),
                duration_s=max(0.0, fmean(one.duration_s for one in readings) - self._overhead.duration_s),
                energy_j=self._energy_j(readings),
            )

    def _energy_j(self, readings: Sequence[Reading]) -> float | None:
        """The mean over the executions that the meter could read."""
        energies_j = [reading.energy_j for reading in readings if reading.energy_j is not None]
        if not energies_j:
            return None
        return max(0.0, fmean(energies_j) - (self._overhead.energy_j or 0.0))
