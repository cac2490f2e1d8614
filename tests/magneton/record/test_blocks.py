"""A block is its steps and nothing else, whatever the meter can see."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from looking import Load, LookingMeter
from torch_steps import ClockMeter, FakeClock, FunctionSystem

from magneton.meters.meter import Reading
from magneton.record.blocks import run_block, run_clean_block, summed
from magneton.record.windows import Windows
from magneton.workload import CALL


def spending(clock: FakeClock, *, step_s: float, rewind_s: float = 0.0) -> FunctionSystem:
    def work() -> Mapping[str, Any]:
        clock.spend(step_s)
        return {}

    return FunctionSystem(work, before=lambda: clock.spend(rewind_s))


def test_short_windows_leave_rewinding_out():
    clock = FakeClock()
    reading = run_block(
        spending(clock, step_s=2.0, rewind_s=10.0),
        CALL,
        3,
        7,
        Windows(ClockMeter(clock, power_w=5.0), clock=clock),
        clock_s=clock,
    )
    assert (reading.pass_, reading.phase, reading.round, reading.steps) == ("clean", CALL, 7, 3)
    assert reading.duration_s == 6.0
    assert reading.energy_j == 30.0


def test_a_coarse_meter_gets_one_window_over_the_block():
    clock = FakeClock()
    meter = ClockMeter(clock, shortest_window_s=1.0)
    reading = run_block(
        spending(clock, step_s=2.0, rewind_s=0.01), CALL, 3, 0, Windows(meter, clock=clock), clock_s=clock
    )
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
    reading = run_block(system, CALL, steps, 0, Windows(meter, clock=clock), clock_s=clock)
    assert reading.duration_s == pytest.approx(steps * step_s, rel=1e-6, abs=1e-6)
    assert reading.energy_j == pytest.approx(5.0 * steps * step_s, rel=1e-6, abs=1e-6)
    assert meter.windows[-1].duration_s >= 1.0


@pytest.mark.parametrize("shortest_window_s", [0.0, 1.0])
def test_every_step_starts_from_a_rewound_system(shortest_window_s: float):
    clock = FakeClock()
    system = spending(clock, step_s=1.0)
    run_block(
        system, CALL, 3, 0, Windows(ClockMeter(clock, shortest_window_s=shortest_window_s), clock=clock)
    )
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
    assert run_block(FunctionSystem(launch), CALL, 2, 0, Windows(meter, wait, clock=clock)).duration_s == 4.0


def test_the_block_starts_on_the_clock_of_the_recording():
    clock = FakeClock()
    clock.spend(42.0)
    assert (
        run_block(spending(clock, step_s=1.0), CALL, 1, 0, Windows(ClockMeter(clock)), clock_s=clock).start_s
        == 42.0
    )


def test_a_wrapper_surrounds_each_step_and_not_the_rewind():
    entered: list[list[str]] = []
    system = FunctionSystem(dict)

    @contextmanager
    def around() -> Generator[None]:
        entered.append(list(system.calls))
        yield

    run_block(system, CALL, 2, 0, Windows(ClockMeter(FakeClock())), around_step=around)
    assert entered == [["rewind"], ["rewind", "step", "rewind"]]


def test_an_unread_window_leaves_the_block_unread_and_never_zero():
    clock = FakeClock()
    reading = run_block(spending(clock, step_s=1.0), CALL, 2, 0, Windows(ClockMeter(clock, reads=False)))
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

        reading = run_block(
            FunctionSystem(work), CALL, len(steps_s), 0, Windows(ClockMeter(clock, power_w=power_w))
        )
        assert reading.energy_j is not None
        return reading.energy_j

    assert energy_j(3.0 * factor) == pytest.approx(factor * energy_j(3.0), rel=1e-9)


def drawing(load: Load, *, step_s: float = 0.3, rewind_s: float = 0.0) -> FunctionSystem:
    def work() -> Mapping[str, Any]:
        load.draw(step_s, 300.0)
        return {}

    return FunctionSystem(work, before=lambda: load.draw(rewind_s, 200.0))


def test_a_meter_is_told_of_how_many_equal_pieces_its_window_is_made():
    load = Load()
    meter = LookingMeter(load)
    run_block(drawing(load, rewind_s=0.2), CALL, 10, 0, Windows(meter, clock=load))
    assert meter.pieces[0] == 10
    assert meter.pieces[1] == pytest.approx(1.1 * 10, abs=1)  # rewinding alone, as long as in the block


def test_host_energy_of_rewinding_is_taken_off_as_the_device_energy_is():
    load = Load()
    meter = LookingMeter(load, update_period_s=0.01, look_s=0.01, host_w=30.0)
    row = run_block(drawing(load, rewind_s=0.2), CALL, 10, 0, Windows(meter, clock=load))
    assert row.duration_s == pytest.approx(3.0)
    assert row.energy_j == pytest.approx(900.0, rel=0.01)
    assert row.host_energy_j == pytest.approx(90.0)
    assert row.agreement == 1.02


def test_a_block_whose_rewinding_was_not_read_has_no_energy_and_says_why():
    load = Load()
    meter = LookingMeter(load, gaps=["", "counter reset"])
    row = run_block(drawing(load, rewind_s=0.2), CALL, 10, 0, Windows(meter, clock=load))
    assert (row.energy_j, row.gap) == (None, "counter reset")


def test_a_clean_block_is_read_again_where_a_timeline_block_is_not():
    load = Load()
    windows = Windows(LookingMeter(load, gaps=["hot", "", "hot"]), clock=load)
    clean, _ = run_clean_block(drawing(load), CALL, 10, 0, windows, clock_s=load)
    timeline = run_block(drawing(load), CALL, 10, 0, windows, clock_s=load, pass_="timeline")
    assert clean.energy_j is not None and clean.gap == ""
    assert (timeline.energy_j, timeline.gap) == (None, "hot")


def test_what_the_device_was_like_stands_beside_a_clean_block():
    load = Load()
    row, (before, after) = run_clean_block(
        drawing(load), CALL, 10, 4, Windows(LookingMeter(load), clock=load), clock_s=load
    )
    assert (before.moment, before.round, before.phase) == ("before", 4, CALL)
    assert (before.temperature_c, before.clock_hz, before.throttle) == (
        50.0,
        None,
        "sw-power-cap, sync-boost",
    )
    assert (after.moment, after.temperature_c, after.foreign) == ("after", 51.0, 0)
    assert before.time_s == row.start_s and after.time_s >= row.start_s + row.duration_s


def test_a_meter_that_tells_nothing_of_conditions_leaves_none():
    clock = FakeClock()
    _, conditions = run_clean_block(spending(clock, step_s=1.0), CALL, 2, 0, Windows(ClockMeter(clock)))
    assert conditions == ()


def test_sums_keep_what_all_parts_tell_and_the_first_gap():
    parts = [
        Reading(duration_s=1.0, energy_j=2.0, host_energy_j=1.0),
        Reading(duration_s=1.0, energy_j=None, gap="hot", host_energy_j=3.0),
        Reading(duration_s=1.0, energy_j=None, gap="foreign", host_energy_j=None),
    ]
    assert summed(parts) == Reading(duration_s=3.0, energy_j=None, gap="hot", host_energy_j=None)
    assert summed(parts[:2]).host_energy_j == 4.0


def test_steps_run_for_half_a_window_before_a_sensor_is_asked_and_not_before_a_model():
    load = Load()
    meter = LookingMeter(load)
    run_clean_block(drawing(load), CALL, 10, 0, Windows(meter, clock=load), clock_s=load)
    assert meter.began_s[0] - load.slept_s[0] >= 1.0
    system = spending(FakeClock(), step_s=1.0)
    run_clean_block(system, CALL, 3, 0, Windows(ClockMeter(FakeClock())))
    assert system.calls.count("step") == 3


def test_a_block_under_the_profiler_teaches_nothing_about_the_length_of_a_step():
    load = Load()
    windows = Windows(LookingMeter(load), clock=load)
    run_block(drawing(load, step_s=0.3), CALL, 10, 0, windows)
    run_block(drawing(load, step_s=0.9), CALL, 10, 0, windows, pass_="timeline")
    assert windows.step_s[CALL] == pytest.approx(0.3)


def test_rewinding_that_was_slow_when_it_was_timed_is_read_long_enough_all_the_same():
    load = Load()
    lengths_s = iter([0.2] * 10 + [3.0])

    def work() -> Mapping[str, Any]:
        load.draw(0.3, 300.0)
        return {}

    system = FunctionSystem(work, before=lambda: load.draw(next(lengths_s, 0.2), 200.0))
    meter = LookingMeter(load, update_period_s=0.01, look_s=0.01)
    row = run_block(system, CALL, 10, 0, Windows(meter, clock=load))
    assert row.energy_j == pytest.approx(900.0, rel=0.01)
    assert meter.pieces[-1] * 0.2 >= meter.shortest_window_s
