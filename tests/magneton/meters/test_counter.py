"""A counter watched closely, under a clock that only sleeping moves."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sensors import FakeBoard, FakeClock, FakeNvml

from magneton.meters.board import open_board
from magneton.meters.counter import Counter, steps_of
from magneton.meters.edges import LONGEST_PERIOD_S, Edge
from magneton.meters.sensors import SensorUnusable


def counter_of(board: FakeBoard, clock: FakeClock) -> Counter:
    opened = open_board(FakeNvml(clock, [board]).module(), 0)
    return Counter(read_j=opened.total_energy_j, clock_s=clock.now_s, sleep=clock.sleep)


@given(st.floats(0.02, 0.5))
@settings(deadline=None, max_examples=20)
def test_period_and_step_are_found(period_s: float) -> None:
    clock = FakeClock()
    counter = counter_of(FakeBoard(power_w=80.0, period_s=period_s), clock)
    edges = [edge for _ in range(6) if (edge := counter.next_edge()) is not None]

    steps = steps_of(edges, "the counter")

    assert steps.period_s == pytest.approx(period_s, abs=2e-3)
    assert steps.step_j == pytest.approx(80.0 * period_s, rel=0.02)
    assert max(edge.slack_s for edge in edges) <= 1.1e-3


def test_a_counter_that_runs_backwards_is_unusable() -> None:
    back = [Edge(seen_before_s=at, seen_s=at + 0.01, energy_j=-5.0 * at) for at in range(4)]

    with pytest.raises(SensorUnusable, match="the counter runs backwards"):
        steps_of(back, "the counter")


def test_waiting_for_an_edge_ends() -> None:
    clock = FakeClock()
    before_s = clock.now_s()

    assert counter_of(FakeBoard(power_w=0.0), clock).next_edge() is None
    assert clock.now_s() - before_s == pytest.approx(LONGEST_PERIOD_S, abs=0.01)
