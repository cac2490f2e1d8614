"""One block of equal steps under one meter.

In: a running system, a phase and windows. Out: a ``BlockReading`` for the whole block. Rewinding belongs to
no step. A meter that reads single operators gets one window around each step, and the readings are summed;
a meter with a longer shortest window gets one window around the block, rewinding included. Where that is
not cheap (an engine has to run a prompt again before it can decode), a second window reads rewinding
alone, and it is taken off.

    short windows    rewind [step] rewind [step] rewind [step]
    long windows     [rewind step rewind step rewind step] - [rewind rewind rewind ...]
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext

from magneton.meters.meter import Reading, State
from magneton.profile.model import BlockReading, Conditions, Moment, Pass
from magneton.record.windows import LONGER, TRIES, Windows, per_piece, without
from magneton.systems.running import RunningSystem
from magneton.workload import Phase

SETTLES = 0.5  # of a window: how long steps run before it, where a sensor is asked
CHEAP = 0.01  # of a block: rewinding that takes less is left in


def run_block(
    system: RunningSystem,
    phase: Phase,
    steps: int,
    round: int,
    windows: Windows,
    *,
    clock_s: Callable[[], float] = time.monotonic,
    pass_: Pass = "clean",
    around_step: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> BlockReading:
    """Run ``steps`` steps, each inside ``around_step``. ``clock_s`` is zero at the start of the recording."""
    start_s = clock_s()
    learns = pass_ == "clean"
    reading = _read(system, phase, steps, windows, learns=learns, around_step=around_step)
    return _row(reading, pass_, phase, round, start_s, steps)


def run_clean_block(
    system: RunningSystem,
    phase: Phase,
    steps: int,
    round: int,
    windows: Windows,
    *,
    clock_s: Callable[[], float] = time.monotonic,
) -> tuple[BlockReading, tuple[Conditions, ...]]:
    """A block that counts: read again where conditions were bad, with what the device was like around it."""
    start_s = clock_s()
    reading = _read(system, phase, steps, windows, tries=TRIES)
    conditions = tuple(_conditions(reading, phase, round, start_s, clock_s()))
    return _row(reading, "clean", phase, round, start_s, steps), conditions


def summed(readings: Iterable[Reading]) -> Reading:
    """All of them together; one window without a reading leaves the sum without one."""
    parts = tuple(readings)
    return Reading(
        duration_s=sum(part.duration_s for part in parts),
        energy_j=_sum(part.energy_j for part in parts),
        gap=next((part.gap for part in parts if part.gap), ""),
        host_energy_j=_sum(part.host_energy_j for part in parts),
        agreement=parts[0].agreement if len(parts) == 1 else None,
        before=parts[0].before if parts else None,
        after=parts[-1].after if parts else None,
    )


def _sum(figures: Iterable[float | None]) -> float | None:
    total = 0.0
    for figure in figures:
        if figure is None:
            return None
        total += figure
    return total


def _row(reading: Reading, pass_: Pass, phase: Phase, round: int, start_s: float, steps: int) -> BlockReading:
    return BlockReading(
        pass_=pass_,
        phase=phase,
        round=round,
        start_s=start_s,
        steps=steps,
        duration_s=reading.duration_s,
        energy_j=reading.energy_j,
        host_energy_j=reading.host_energy_j,
        gap=reading.gap,
        agreement=reading.agreement,
    )


def _conditions(
    reading: Reading, phase: Phase, round: int, start_s: float, stop_s: float
) -> Iterator[Conditions]:
    moments: tuple[tuple[Moment, State | None, float], ...] = (
        ("before", reading.before, start_s),
        ("after", reading.after, stop_s),
    )
    for moment, state, time_s in moments:
        if state is not None:
            yield Conditions(
                phase=phase,
                round=round,
                moment=moment,
                time_s=time_s,
                temperature_c=state.temperature_c,
                clock_hz=state.clock_hz,
                throttle=", ".join(state.throttle),
                foreign=state.foreign,
            )


def _read(
    system: RunningSystem,
    phase: Phase,
    steps: int,
    windows: Windows,
    *,
    tries: int = 1,
    learns: bool = True,
    around_step: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Reading:
    """``learns``: these steps are as long as those of later blocks, and not slowed down by what is around."""

    def step() -> None:
        with around_step():
            system.step(phase)

    def rewound_step() -> None:
        system.rewind(phase)
        step()

    if windows.shortest_window_s == 0.0:
        return summed([_one_step(system, phase, step, windows) for _ in range(steps)])
    if tries > 1 and windows.measures:
        _settle(rewound_step, windows)
    known_s = windows.step_s.get(phase, 0.0)
    whole = windows.over(rewound_step, steps, kind="block", phase=phase, piece_s=known_s, tries=tries)
    if learns:
        windows.step_s[phase] = whole.duration_s / steps
    rewinding = _rewinding(system, phase, steps, whole, windows, tries)
    return whole if rewinding is None else without(whole, rewinding, why="rewinding took no less than all")


def _settle(rewound_step: Callable[[], None], windows: Windows) -> None:
    """Clocks and voltages follow the load before a sensor is asked."""
    until_s = windows.clock.now_s() + SETTLES * windows.shortest_window_s
    while windows.clock.now_s() < until_s:
        rewound_step()
        windows.synchronise()


def _one_step(system: RunningSystem, phase: Phase, step: Callable[[], None], windows: Windows) -> Reading:
    system.rewind(phase)
    return windows.single(step)


def _rewinding(
    system: RunningSystem, phase: Phase, steps: int, whole: Reading, windows: Windows, tries: int
) -> Reading | None:
    """What rewinding ``steps`` times takes of a block; None where that is next to nothing."""

    def rewind() -> None:
        system.rewind(phase)

    one_s = _rewind_s(rewind, steps, CHEAP * whole.duration_s, windows)
    if one_s is None:
        return None
    times = max(1, math.ceil(LONGER * max(windows.shortest_window_s, steps * one_s) / one_s))
    read = windows.over(rewind, times, kind="block", phase=phase, piece_s=one_s, tries=tries)
    if read.duration_s < windows.shortest_window_s:  # it was slower when it was timed
        times = math.ceil(times * LONGER * windows.shortest_window_s / read.duration_s)
        read = windows.over(rewind, times, kind="block", phase=phase, piece_s=one_s, tries=tries)
    return per_piece(read, times / steps)


def _rewind_s(rewind: Callable[[], None], steps: int, cheap_s: float, windows: Windows) -> float | None:
    """How long rewinding takes once; None where ``steps`` times take no more than ``cheap_s``."""
    done, spent_s = 0, 0.0
    while done < steps:
        now = min(max(1, done), steps - done)
        windows.synchronise()
        began_s = windows.clock.now_s()
        for _ in range(now):
            rewind()
        windows.synchronise()
        spent_s += windows.clock.now_s() - began_s
        done += now
        if spent_s > cheap_s:
            return spent_s / done
    return None
