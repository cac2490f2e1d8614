"""A block is its steps and nothing else, whatever the meter can see."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch_steps import ClockMeter, FakeClock, FunctionSystem

from magneton.meters.meter import Reading
from magneton.record.blocks import run_block, summed
from magneton.workload import CALL


def spending(clock: FakeClock, *, step_s: float, rewind_s: float = 0.0) -> FunctionSystem:
    def work() -> Mapping[str, Any]:
        clock.spend(step_s)
        return {}

    return FunctionSystem(work, before=lambda: clock.spend(rewind_s))


def test_short_windows_leave_rewinding_out():
    clock = FakeClock()
    reading = run_block(
        spending(clock, step_s=2.0, rewind_s=10.0), CALL, 3, 7, ClockMeter(clock, power_w=5.0), clock_s=clock
    )
    assert (reading.pass_, reading.phase, reading.round, reading.steps) == ("clean", CALL, 7, 3)
    assert reading.duration_s == 6.0
    assert reading.energy_j == 30.0


def test_a_coarse_meter_gets_one_window_over_the_block():
    clock = FakeClock()
    meter = ClockMeter(clock, shortest_window_s=1.0)
    reading = run_block(spending(clock, step_s=2.0, rewind_s=0.01), CALL, 3, 0, meter, clock_s=clock)
    assert reading.duration_s == pytest.approx(6.03)
    assert meter.windows[0].duration_s == reading.duration_s


@given(step_s=st.floats(0.01, 10.0), rewind_s=st.floats(0.2, 50.0), steps=st.integers(1, 5))
def test_rewinding_that_costs_something_is_read_apart_and_taken_off(
    step_s: float, rewind_s: float, steps: int
):
    """An engine runs the prompt again before it can decode."""
    clock = FakeClock()
    meter = ClockMeter(clock, power_w=5.0, shortest_window_s=1.0)
    system = spending(clock, step_s=step_s, rewind_s=rewind_s)
    reading = run_block(system, CALL, steps, 0, meter, clock_s=clock)
    assert reading.duration_s == pytest.approx(steps * step_s, rel=1e-6, abs=1e-6)
    assert reading.energy_j == pytest.approx(5.0 * steps * step_s, rel=1e-6, abs=1e-6)
    assert meter.windows[-1].duration_s >= 1.0


@pytest.mark.parametrize("shortest_window_s", [0.0, 1.0])
def test_every_step_starts_from_a_rewound_system(shortest_window_s: float):
    clock = FakeClock()
    system = spending(clock, step_s=1.0)
    run_block(system, CALL, 3, 0, ClockMeter(clock, shortest_window_s=shortest_window_s))
    assert system.calls[:6] == ["rewind", "step"] * 3
    assert "step" not in system.calls[6:]


@pytest.mark.parametrize("shortest_window_s", [0.0, 1.0])
def test_work_that_is_still_under_way_belongs_to_the_block(shortest_window_s: float):
    clock = FakeClock()
    pending_s: list[float] = []

    def launch() -> Mapping[str, Any]:
        pending_s.append(2.0)
        return {}

    def wait() -> None:
        clock.spend(sum(pending_s))
        pending_s.clear()

    pending_s.append(100.0)  # left over from before: not the block's
    meter = ClockMeter(clock, shortest_window_s=shortest_window_s)
    assert run_block(FunctionSystem(launch), CALL, 2, 0, meter, synchronise=wait).duration_s == 4.0


def test_the_block_starts_on_the_clock_of_the_recording():
    clock = FakeClock()
    clock.spend(42.0)
    assert (
        run_block(spending(clock, step_s=1.0), CALL, 1, 0, ClockMeter(clock), clock_s=clock).start_s == 42.0
    )


def test_a_wrapper_surrounds_each_step_and_not_the_rewind():
    entered: list[list[str]] = []
    system = FunctionSystem(dict)

    @contextmanager
    def around() -> Generator[None]:
        entered.append(list(system.calls))
        yield

    run_block(system, CALL, 2, 0, ClockMeter(FakeClock()), around_step=around)
    assert entered == [["rewind"], ["rewind", "step", "rewind"]]


def test_an_unread_window_leaves_the_block_unread_and_never_zero():
    clock = FakeClock()
    reading = run_block(spending(clock, step_s=1.0), CALL, 2, 0, ClockMeter(clock, reads=False))
    assert reading.energy_j is None
    assert reading.duration_s == 2.0
    half = [Reading(duration_s=1.0, energy_j=2.0), Reading(duration_s=1.0, energy_j=None)]
    assert summed(half) == Reading(duration_s=2.0, energy_j=None)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=20), st.floats(0.1, 100))
def test_k_times_the_power_gives_k_times_the_energy(steps_s: list[float], factor: float):
    def energy_j(power_w: float) -> float:
        clock = FakeClock()
        left_s = iter(steps_s)

        def work() -> Mapping[str, Any]:
            clock.spend(next(left_s))
            return {}

        reading = run_block(FunctionSystem(work), CALL, len(steps_s), 0, ClockMeter(clock, power_w=power_w))
        assert reading.energy_j is not None
        return reading.energy_j

    assert energy_j(3.0 * factor) == pytest.approx(factor * energy_j(3.0), rel=1e-9)
