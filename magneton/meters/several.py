"""Several boards as one: their windows, and their power."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

from magneton.meters.meter import Reading, State
from magneton.meters.sampler import PERIOD_S
from magneton.profile.model import PowerSample


def sum_readings(readings: Sequence[Reading]) -> Reading:
    """All boards as one: what one of them does not tell, nobody knows."""
    energies_j = [reading.energy_j for reading in readings]
    known_j = [energy_j for energy_j in energies_j if energy_j is not None]
    agreements = [reading.agreement for reading in readings if reading.agreement is not None]
    complete = len(known_j) == len(readings)
    agree = complete and len(agreements) == len(readings)
    return Reading(
        duration_s=readings[0].duration_s,
        energy_j=sum(known_j) if complete else None,
        gap="; ".join(reading.gap for reading in readings if reading.gap),
        agreement=sum(a * e for a, e in zip(agreements, known_j, strict=True)) / sum(known_j)
        if agree
        else None,
        before=_worst([reading.before for reading in readings]),
        after=_worst([reading.after for reading in readings]),
    )


def _worst(states: Sequence[State | None]) -> State | None:
    """The hottest, the slowest, every reason, and the most foreigners."""
    known = [state for state in states if state is not None]
    if len(known) < len(states):
        return None
    temperatures = [state.temperature_c for state in known if state.temperature_c is not None]
    clocks = [state.clock_hz for state in known if state.clock_hz is not None]
    foreign = [state.foreign for state in known if state.foreign is not None]
    return State(
        temperature_c=max(temperatures, default=None),
        clock_hz=min(clocks, default=None),
        throttle=tuple(dict.fromkeys(reason for state in known for reason in state.throttle)),
        foreign=max(foreign, default=None),
    )


def sum_samples(taken: Sequence[Sequence[PowerSample]]) -> tuple[PowerSample, ...]:
    """Boards are looked at one after the other; a moment at which one of them told nothing has no sum."""
    first, *others = taken
    summed: list[PowerSample] = []
    for sample in first:
        near = [_nearest(samples, sample.time_s) for samples in others]
        powers_w = [each.power_w for each in near if each is not None]
        if len(powers_w) == len(others):
            summed.append(replace(sample, power_w=sample.power_w + sum(powers_w)))
    return tuple(summed)


def _nearest(samples: Sequence[PowerSample], time_s: float) -> PowerSample | None:
    """The sample of that moment; None where none was taken within a period."""
    after = bisect_left(samples, time_s, key=attrgetter("time_s"))
    near = [each for each in samples[max(0, after - 1) : after + 1] if abs(each.time_s - time_s) <= PERIOD_S]
    return min(near, key=lambda each: abs(each.time_s - time_s), default=None)
