"""Energy from edges: exact within what polls and lags leave open, at any phase, period and rhythm of work."""

from math import sqrt
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from published import POLL_S, Load, Sensor

from magneton.meters.edges import Edge
from magneton.meters.windows import flanked_energy, steady_energy

GOLDEN = (sqrt(5) - 1) / 2


@st.composite
def sensors(draw: st.DrawFn, *, kind: str = "integral") -> Sensor:
    period_s = draw(st.floats(0.02, 0.5))
    phase_s, lag_s = draw(st.floats(0, period_s)), draw(st.floats(0, period_s))
    if kind == "sampled":
        return Sensor(period_s=period_s, phase_s=phase_s, lag_s=lag_s, kind="sampled")
    return Sensor(period_s=period_s, phase_s=phase_s, lag_s=lag_s)


@st.composite
def loads(draw: st.DrawFn, period_s: float, pieces: st.SearchStrategy[int]) -> Load:
    """From half the shortest window to twice it."""
    shortest_s = max(2.0, 20 * period_s)
    began_s = draw(st.floats(10, 11))
    return Load(
        began_s=began_s,
        ended_s=began_s + draw(st.floats(shortest_s / 2, 2 * shortest_s)),
        pieces=draw(pieces),
        high_w=draw(st.floats(300, 700)),
        low_w=draw(st.floats(60, 300)),
        share=draw(st.floats(0.1, 0.9)),
        idle_after_w=draw(st.floats(50, 90)),
    )


def steady_error(load: Load, sensor: Sensor) -> tuple[float, float]:
    """Relative, and the bound that the estimate itself gives for a load that swings as this one does."""
    edges = sensor.edges(load, load.began_s, load.ended_s)
    estimate = steady_energy(edges, load.began_s, load.ended_s, load.pieces)
    assert estimate is not None
    mean_w = load.energy_j / (load.ended_s - load.began_s)
    swing, peak = (load.high_w - load.low_w) / mean_w, load.high_w / mean_w
    return estimate.energy_j / load.energy_j - 1, 1.25 * estimate.error * (sqrt(12) * peak + 2 * swing)


@given(st.data())
@settings(deadline=None, max_examples=200)
def test_a_steady_window_is_exact_within_its_own_bound(data: st.DataObject) -> None:
    sensor = data.draw(sensors())
    error, bound = steady_error(data.draw(loads(sensor.period_s, st.integers(8, 100_000))), sensor)

    assert abs(error) <= bound


@given(st.data())
@settings(deadline=None, max_examples=100)
def test_pieces_that_are_short_leave_next_to_no_error(data: st.DataObject) -> None:
    sensor = data.draw(sensors())
    load = data.draw(loads(sensor.period_s, st.integers(2000, 100_000)))
    error, _ = steady_error(load, sensor)

    assert abs(error) <= 5e-3


@given(st.data())
@settings(deadline=None, max_examples=100)
def test_a_sensor_that_looks_at_a_quarter_of_each_period_sees_short_pieces_whole(data: st.DataObject) -> None:
    sensor = data.draw(sensors(kind="sampled"))
    load = data.draw(loads(sensor.period_s, st.integers(1000, 100_000)))
    error, bound = steady_error(load, sensor)
    looked_s = sensor.boxcar * sensor.period_s
    aliased = load.piece_s / 4 / looked_s * (load.high_w - load.low_w) / load.energy_j
    aliased *= load.ended_s - load.began_s

    assert abs(error) <= bound + aliased + 1e-9


def test_long_pieces_are_taken_whole() -> None:
    """Two thirds of a period's worth of pieces that swing by a factor of four."""
    errors = [
        steady_error(
            Load(began_s=5.0, ended_s=8.0, pieces=20, high_w=400.0, low_w=100.0, share=0.4),
            Sensor(period_s=0.1, phase_s=phase / 100, lag_s=0.03),
        )[0]
        for phase in range(10)
    ]

    assert max(map(abs, errors)) < 2e-3


@given(st.data())
@settings(deadline=None, max_examples=200)
def test_a_flanked_window_is_exact_within_lag_times_the_difference_of_rests(data: st.DataObject) -> None:
    sensor = data.draw(sensors())
    load = data.draw(loads(sensor.period_s, st.integers(1, 7)))
    edges = sensor.edges(load, load.began_s - 5 * sensor.period_s, load.ended_s + 5 * sensor.period_s)

    estimate = flanked_energy(edges, load.began_s, load.ended_s, sensor.period_s)

    assert estimate is not None
    lag_j = sensor.period_s / 2 * abs(load.idle_after_w - load.idle_w)
    polls_j = 8 * POLL_S * max(load.idle_w, load.idle_after_w)
    assert abs(estimate.energy_j - load.energy_j) <= lag_j + polls_j


def test_windows_at_even_phases_average_out_what_a_sampling_sensor_misses() -> None:
    errors: list[float] = []
    for turn in range(40):
        began_s = 10.0 + (turn * GOLDEN % 1.0) * 0.1
        load = Load(began_s=began_s, ended_s=began_s + 2.013, pieces=1, high_w=400, low_w=400, share=0.5)
        sensor = Sensor(period_s=0.1, phase_s=0.0, lag_s=0.02, kind="sampled")
        estimate = flanked_energy(sensor.edges(load, 9.5, 13.0), load.began_s, load.ended_s, 0.1)
        assert estimate is not None
        errors.append(estimate.energy_j / load.energy_j - 1)

    assert max(map(abs, errors)) > 5e-3  # one window does not know
    assert abs(fmean(errors)) < 2e-3


def test_power_after_work_is_not_power_before() -> None:
    load = Load(began_s=10.0, ended_s=12.0, pieces=1, high_w=300, low_w=300, share=0.5, idle_after_w=110.0)
    sensor = Sensor(period_s=0.1, phase_s=0.0, lag_s=0.05)
    estimate = flanked_energy(sensor.edges(load, 9.5, 13.0), 10.0, 12.0, 0.1)

    assert estimate is not None
    assert estimate.energy_j == pytest.approx(600.0, abs=1.0)


@pytest.mark.parametrize(("since_s", "until_s"), [(9.9, 13.0), (9.5, 12.05)])
def test_a_flanked_window_without_its_edges_is_none(since_s: float, until_s: float) -> None:
    load = Load(began_s=10.0, ended_s=12.0, pieces=1, high_w=300, low_w=300, share=0.5)
    edges = Sensor(period_s=0.1, phase_s=0.0, lag_s=0.0).edges(load, since_s, until_s)

    assert flanked_energy(edges, 10.0, 12.0, 0.1) is None


def test_a_flanked_window_that_spends_less_than_rest_is_none() -> None:
    load = Load(began_s=10.0, ended_s=12.0, pieces=1, high_w=0, low_w=0, share=0.5, idle_w=90.0)
    edges = Sensor(period_s=0.1, phase_s=0.0, lag_s=0.0).edges(load, 9.5, 13.0)

    assert flanked_energy(edges, 10.0, 12.0, 0.1) is None


def test_edges_that_span_little_of_a_window_are_not_enough() -> None:
    edges = [Edge(seen_before_s=at_s, seen_s=at_s + 1e-3, energy_j=at_s) for at_s in (1.0, 1.5, 1.6, 1.7)]

    assert steady_energy(edges, 0.9, 3.0, 1000) is None
    assert steady_energy([], 0.9, 3.0, 1000) is None


def test_the_start_of_a_window_is_passed_over() -> None:
    """Clocks and voltages follow a load after a while."""
    late = [
        Edge(seen_before_s=at / 100, seen_s=at / 100 + 1e-3, energy_j=300 * max(at / 100, 0.25))
        for at in range(1, 200, 2)
    ]
    estimate = steady_energy(late, 0.0, 2.0, 10_000)

    assert estimate is not None
    assert estimate.energy_j == pytest.approx(600.0, rel=1e-3)


def test_an_edge_that_was_seen_late_is_known_less_well() -> None:
    def estimated(slack_s: float) -> float:
        edges = [
            Edge(seen_before_s=at / 10 - slack_s, seen_s=at / 10, energy_j=20.0 * at) for at in range(1, 21)
        ]
        estimate = steady_energy(edges, 0.0, 2.05, 10_000)
        assert estimate is not None
        return estimate.error

    assert estimated(0.05) > 10 * estimated(0.001)
