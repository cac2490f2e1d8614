"""Looks find edges within a poll, with few looks; late ones are known less exactly; faults are told."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sensors import FakeClock

from magneton.meters.edges import LONGEST_PERIOD_S, POLL_S, CounterEdges, PowerEdges


class Figures:
    """A counter of 100 W, published every ``period_s``; power that steps with it; looks counted."""

    def __init__(self, clock: FakeClock, period_s: float) -> None:
        self.clock = clock
        self.period_s = period_s
        self.looks = 0
        self.shift_j = 0.0
        self.frozen = False
        self.even = False

    def tick(self) -> int:
        return int(self.clock.now_s() / self.period_s)

    def energy_j(self) -> float:
        self.looks += 1
        return 0.0 if self.frozen else 100.0 * self.tick() * self.period_s + self.shift_j

    def power_w(self) -> float | None:
        self.looks += 1
        return None if self.frozen else 100.0 if self.even else 100.0 + self.tick() % 3


@given(st.floats(0.02, 0.5), st.floats(0, 1))
@settings(deadline=None, max_examples=40)
def test_each_edge_is_found_within_a_poll_with_few_looks(period_s: float, phase: float) -> None:
    clock = FakeClock(phase)
    figures = Figures(clock, period_s)
    edges = CounterEdges(figures.energy_j, clock.now_s, period_s=period_s * 1.01)
    watch = clock.watch(edges.look)
    clock.sleep(20 * period_s)
    watch.stop()

    assert 18 <= len(edges.seen) <= 20
    assert max(edge.slack_s for edge in edges.seen[1:]) <= 2.1 * POLL_S
    assert figures.looks <= period_s / POLL_S + 20 * max(14, 0.14 * period_s / POLL_S)
    for before, after in pairwise(edges.seen):
        assert after.energy_j - before.energy_j == pytest.approx(100 * period_s)


def test_an_edge_that_a_look_came_late_for_says_so() -> None:
    clock = FakeClock(0.0)
    clock.late_s = 0.03
    figures = Figures(clock, 0.1)
    edges = CounterEdges(figures.energy_j, clock.now_s, period_s=0.1)
    watch = clock.watch(edges.look)
    clock.sleep(3.0)
    watch.stop()

    for edge in edges.seen:
        tick_s = edge.energy_j / 100.0
        assert edge.seen_before_s - 1e-9 <= tick_s <= edge.seen_s + 1e-9
    assert max(edge.slack_s for edge in edges.seen) > 0.02


class BusyInterpreter:
    """Time that passes while a figure is asked for: the call waits now and then for its turn to run."""

    def __init__(self) -> None:
        self.at_s = 0.0
        self._generator = Random(6)

    def now_s(self) -> float:
        return self.at_s

    def turn(self) -> None:
        self.at_s += 0.04 if self._generator.random() < 0.1 else 2e-4

    def energy_j(self) -> float:
        self.turn()
        return 100.0 * int(self.at_s / 0.1) * 0.1

    def power_w(self) -> float:
        self.turn()
        return 100.0 + int(self.at_s / 0.1) % 3


@pytest.mark.parametrize("source", ["counter", "power"])
def test_an_edge_seen_by_a_call_that_had_to_wait_lies_in_its_span(source: str) -> None:
    busy = BusyInterpreter()
    edges = (
        CounterEdges(busy.energy_j, busy.now_s, period_s=0.1)
        if source == "counter"
        else PowerEdges(busy.power_w, busy.now_s, period_s=0.1)
    )
    for _ in range(1500):
        busy.at_s += max(edges.look(), POLL_S / 2)

    seen = [edge for edge in edges.seen if edge.slack_s > 0]  # others are due, and were not seen
    assert len(seen) > 20
    for edge in seen:
        latest_s = 0.1 * int(edge.seen_s / 0.1 + 1e-9)
        assert edge.seen_before_s - 1e-9 <= latest_s


def test_a_period_that_is_not_what_it_was_is_followed() -> None:
    """Probed at 100 ms, and 80 ms now: looks come sooner after the first edge that they missed."""
    clock = FakeClock(0.0)
    edges = CounterEdges(Figures(clock, 0.08).energy_j, clock.now_s, period_s=0.1)
    watch = clock.watch(edges.look)
    clock.sleep(4.0)
    watch.stop()

    located = [edge for edge in edges.seen if edge.slack_s <= 2.1 * POLL_S]
    assert len(located) > 20


def test_a_counter_that_runs_backwards_is_a_fault() -> None:
    clock = FakeClock(0.0)
    figures = Figures(clock, 0.1)
    edges = CounterEdges(figures.energy_j, clock.now_s, period_s=0.1)
    watch = clock.watch(edges.look)
    clock.sleep(1.0)
    assert edges.fault == ""
    figures.shift_j = -500.0
    clock.sleep(1.0)
    watch.stop()

    assert edges.fault == "the energy counter ran backwards by 490 J: it was reset"


def test_a_counter_that_stands_still_is_a_fault() -> None:
    clock = FakeClock(0.0)
    figures = Figures(clock, 0.1)
    figures.frozen = True
    edges = CounterEdges(figures.energy_j, clock.now_s, period_s=0.1)
    watch = clock.watch(edges.look)
    clock.sleep(LONGEST_PERIOD_S - 0.1)
    assert edges.fault == ""
    clock.sleep(0.2)
    watch.stop()

    assert edges.fault == "the energy counter stood still for 2 s"
    assert edges.seen == []


@pytest.mark.parametrize(("even", "mean_w"), [(False, 101.0), (True, 100.0)])
def test_power_adds_up_to_a_counter(even: bool, mean_w: float) -> None:
    clock = FakeClock(0.034)
    figures = Figures(clock, 0.1)
    figures.even = even
    edges = PowerEdges(figures.power_w, clock.now_s, period_s=0.1005)
    watch = clock.watch(edges.look)
    clock.sleep(3.0)
    watch.stop()

    assert 28 <= len(edges.seen) <= 31
    start, stop = edges.seen[2], edges.seen[26]  # a whole number of threes
    assert (stop.energy_j - start.energy_j) / (stop.time_s - start.time_s) == pytest.approx(mean_w, rel=2e-3)
    assert figures.looks < 30 * 20 + 100


def test_a_change_of_power_after_none_is_found_as_closely() -> None:
    clock = FakeClock(0.0)
    figures = Figures(clock, 0.1)  # two periods of 50 ms each: every second change is none
    edges = PowerEdges(figures.power_w, clock.now_s, period_s=0.05)
    watch = clock.watch(edges.look)
    clock.sleep(2.0)
    watch.stop()

    assert 36 <= len(edges.seen) <= 41
    assert max(edge.slack_s for edge in edges.seen[2:]) <= 2.1 * POLL_S


def test_power_that_is_gone_is_a_fault() -> None:
    clock = FakeClock(0.0)
    figures = Figures(clock, 0.1)
    figures.frozen = True
    edges = PowerEdges(figures.power_w, clock.now_s, period_s=0.1)

    assert edges.look() == pytest.approx(0.1)
    assert edges.fault == "the power sensor gave no figure"
