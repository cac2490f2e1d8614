"""Replay with a clock fine enough for one operator: the step's own executions are read where they happen.

In: each operator of one step as it is about to run. Out: the result of its one execution; at the end of
the step one ``ReplayReading`` per key, the mean over its executions. Nothing runs twice, so nothing has to
be put back and nothing is skipped, and an operator finds the caches as its predecessors left them.

What reading costs is taken off: every few operators a window is laid around a call of an operator that
does nothing. It goes the same way into the framework and finds caches just as cold, which windows timed in
a loop do not: around a view they are six times cheaper. docs/decisions/0003-replay.md says why this is no
loop.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any

import torch

from magneton.meters.meter import Meter, Reading
from magneton.profile.model import KeyId, ReplayReading

EVERY = 8  # operators between two empty calls


def empty_call() -> Callable[[], object]:
    """A call of an operator whose kernel compares two shapes: all it costs is being called."""
    something = torch.zeros(1)
    return lambda: torch.ops.aten.is_same_size.default(something, something)


class InPlaceReader:
    """Reads every execution of every operator in one step."""

    def __init__(
        self, meter: Meter, synchronise: Callable[[], None], nothing: Callable[[], object] | None = None
    ) -> None:
        self._meter = meter
        self._synchronise = synchronise
        self._nothing = nothing or empty_call()
        self._executed = 0
        self._empty: list[Reading] = []
        self._readings: defaultdict[KeyId, list[Reading]] = defaultdict(list)

    def execute(self, key_id: KeyId, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        meter, synchronise = self._meter, self._synchronise
        if self._executed % EVERY == 0:
            self._read_nothing()
        self._executed += 1
        synchronise()
        meter.begin()
        result = func(*args, **kwargs)
        synchronise()
        self._readings[key_id].append(meter.end())
        return result

    def _read_nothing(self) -> None:
        self._synchronise()
        self._meter.begin()
        self._nothing()
        self._synchronise()
        self._empty.append(self._meter.end())

    def skipped(self) -> Mapping[KeyId, str]:
        return {}

    def readings(self, round: int) -> Iterator[ReplayReading]:
        if not self._readings:
            return
        empty_s = median(reading.duration_s for reading in self._empty)
        empty_j = _energies_j(self._empty)
        for key_id, readings in self._readings.items():
            energies_j = _energies_j(readings)
            known = energies_j and empty_j
            yield ReplayReading(
                key_id=key_id,
                round=round,
                executions=len(readings),
                duration_s=max(0.0, fmean(one.duration_s for one in readings) - empty_s),
                energy_j=max(0.0, fmean(energies_j) - median(empty_j)) if known else None,
                gap="" if known else next((one.gap for one in (*readings, *self._empty) if one.gap), ""),
            )


def _energies_j(readings: Sequence[Reading]) -> list[float]:
    """Of the windows that the meter could read."""
    return [reading.energy_j for reading in readings if reading.energy_j is not None]
