"""One block of equal steps under one meter.

In: a running system, a phase and a meter. Out: a ``BlockReading`` for the whole block. Rewinding belongs to
no step. A meter that reads single operators gets one window around each step, and the readings are summed;
a meter with a longer shortest window gets one window around the block, rewinding included. Where that is
not cheap (an engine has to run a prompt again before it can decode), a second window reads rewinding
alone, and it is taken off.

    short windows    rewind [step] rewind [step] rewind [step]
    long windows     [rewind step rewind step rewind step] - [rewind rewind rewind ...]
"""

import math
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext

from magneton.meters.meter import Meter, Reading
from magneton.profile.model import BlockReading, Pass
from magneton.systems.running import RunningSystem
from magneton.workload import Phase

CHEAP = 0.01  # of a block: rewinding that takes less is left in
LONGER = 1.1  # windows are planned so much longer than the meter needs


def nothing_to_wait_for() -> None:
    """The device is the host: what was called has been done."""


def run_block(
    system: RunningSystem,
    phase: Phase,
    steps: int,
    round: int,
    meter: Meter,
    *,
    synchronise: Callable[[], None] = nothing_to_wait_for,
    clock_s: Callable[[], float] = time.monotonic,
    pass_: Pass = "clean",
    around_step: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> BlockReading:
    """Run ``steps`` steps, each inside ``around_step``. ``clock_s`` is zero at the start of the recording."""

    def step() -> None:
        with around_step():
            system.step(phase)

    start_s = clock_s()
    if meter.shortest_window_s == 0.0:
        readings = [_one_step(system, phase, step, meter, synchronise) for _ in range(steps)]
    else:
        readings = [_whole_block(system, phase, steps, step, meter, synchronise)]
    total = summed(readings)
    return BlockReading(
        pass_=pass_,
        phase=phase,
        round=round,
        start_s=start_s,
        steps=steps,
        duration_s=total.duration_s,
        energy_j=total.energy_j,
    )


def summed(readings: Iterable[Reading]) -> Reading:
    """All of them together; one window without a reading leaves the sum without one."""
    duration_s, energy_j = 0.0, 0.0
    known = True
    for reading in readings:
        duration_s += reading.duration_s
        known = known and reading.energy_j is not None
        energy_j += reading.energy_j or 0.0
    return Reading(duration_s=duration_s, energy_j=energy_j if known else None)


def _one_step(
    system: RunningSystem,
    phase: Phase,
    step: Callable[[], None],
    meter: Meter,
    synchronise: Callable[[], None],
) -> Reading:
    system.rewind(phase)
    synchronise()
    meter.begin()
    step()
    synchronise()
    return meter.end()


def _whole_block(
    system: RunningSystem,
    phase: Phase,
    steps: int,
    step: Callable[[], None],
    meter: Meter,
    synchronise: Callable[[], None],
) -> Reading:
    synchronise()
    meter.begin()
    for _ in range(steps):
        system.rewind(phase)
        step()
    synchronise()
    whole = meter.end()
    rewinding = _rewinding(system, phase, steps, whole, meter, synchronise)
    return whole if rewinding is None else _without(whole, rewinding)


def _rewinding(
    system: RunningSystem,
    phase: Phase,
    steps: int,
    whole: Reading,
    meter: Meter,
    synchronise: Callable[[], None],
) -> Reading | None:
    """What rewinding ``steps`` times takes of a block; None where that is next to nothing."""
    one = _rewinds(system, phase, 1, meter, synchronise)
    if steps * one.duration_s <= CHEAP * whole.duration_s:
        return None
    enough_s = max(meter.shortest_window_s, steps * one.duration_s)
    times = max(1, math.ceil(LONGER * enough_s / one.duration_s))
    read = _rewinds(system, phase, times, meter, synchronise)
    energy_j = None if read.energy_j is None else read.energy_j * steps / times
    return Reading(duration_s=read.duration_s * steps / times, energy_j=energy_j)


def _rewinds(
    system: RunningSystem, phase: Phase, times: int, meter: Meter, synchronise: Callable[[], None]
) -> Reading:
    synchronise()
    meter.begin()
    for _ in range(times):
        system.rewind(phase)
    synchronise()
    return meter.end()


def _without(whole: Reading, part: Reading) -> Reading:
    """Energy is known where both were read; a difference below zero is noise and no reading."""
    energy_j = None
    if whole.energy_j is not None and part.energy_j is not None and whole.energy_j > part.energy_j:
        energy_j = whole.energy_j - part.energy_j
    return Reading(duration_s=max(0.0, whole.duration_s - part.duration_s), energy_j=energy_j)
