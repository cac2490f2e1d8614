"""Edge-to-edge reading of a published counter, under a clock that only sleeping moves."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sensors import FakeBoard, FakeClock, FakeNvml

from magneton.meters.board import open_board
from magneton.meters.counter import LONGEST_PERIOD_S, Counter, Edge, probe_counter, window_energy_j
from magneton.meters.sensors import SensorUnusable


def counter_of(board: FakeBoard, clock: FakeClock) -> Counter:
    opened = open_board(FakeNvml(clock, [board]).module(), 0)
    return Counter(read_j=opened.total_energy_j, clock_s=clock.read_s, sleep=clock.sleep)


@given(st.floats(0.02, 0.5))
@settings(deadline=None, max_examples=20)
def test_the_probe_finds_period_and_step(period_s: float) -> None:
    clock = FakeClock()
    probe = probe_counter(counter_of(FakeBoard(power_w=80.0, period_s=period_s), clock), "the counter")

    assert probe.period_s == pytest.approx(period_s, abs=2e-3)
    assert probe.step_j == pytest.approx(80.0 * period_s, rel=0.02)


def test_a_counter_that_stands_still_is_unusable() -> None:
    clock = FakeClock()

    with pytest.raises(SensorUnusable, match="did not change within 2 s"):
        probe_counter(counter_of(FakeBoard(power_w=0.0), clock), "the counter")


def test_a_counter_that_runs_backwards_is_unusable() -> None:
    clock = FakeClock()

    with pytest.raises(SensorUnusable, match="runs backwards"):
        probe_counter(counter_of(FakeBoard(power_w=-5.0), clock), "the counter")


def test_waiting_for_an_edge_ends() -> None:
    clock = FakeClock()
    before_s = clock.now_s

    assert counter_of(FakeBoard(power_w=0.0), clock).next_edge() is None
    assert clock.now_s - before_s == pytest.approx(LONGEST_PERIOD_S, abs=0.01)


def test_the_idle_tail_is_taken_off() -> None:
    first, start = Edge(time_s=0.0, energy_j=0.0), Edge(time_s=0.1, energy_j=5.0)  # 50 W idle
    stop = Edge(time_s=2.2, energy_j=5.0 + 2.0 * 300 + 0.1 * 50)  # two busy seconds, then 0.1 s idle

    assert window_energy_j(first, start, 2.1, stop) == pytest.approx(600.0)


def test_a_counter_reset_in_the_window_is_a_gap() -> None:
    first, start = Edge(time_s=0.0, energy_j=100.0), Edge(time_s=0.1, energy_j=105.0)

    assert window_energy_j(first, start, 2.0, Edge(time_s=2.1, energy_j=3.0)) is None


def test_a_counter_reset_before_the_window_is_a_gap() -> None:
    first, start = Edge(time_s=0.0, energy_j=100.0), Edge(time_s=0.1, energy_j=2.0)

    assert window_energy_j(first, start, 2.0, Edge(time_s=2.1, energy_j=300.0)) is None
