"""The simulated board against its equations, integrated numerically: what is drawn, and what is published."""

import bisect
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_board import (
    A100,
    H100,
    RTX_4090,
    V100,
    Board,
    Host,
    Simulation,
    Throttled,
    Work,
    build_library,
    compiler,
    environment,
)

pytestmark = pytest.mark.skipif(compiler() is None, reason="the simulated NVML needs gcc")

LONGEST_STEP_S = 2e-4
SHAPES = {"V100": V100, "A100": A100, "H100": H100, "RTX_4090": replace(RTX_4090, dead_s=0.0)}


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host(environment(build_library())) as found:
        yield found


def play(
    shape: str,
    changes: dict[str, float],
    own: dict[str, Any],
    programme: list[list[float]],
    reads_s: list[float],
) -> dict[str, Any]:
    """Runs segments (pause, busy W, busy s, gap W, gap s, times); looks at the board at the moments given."""
    import pynvml

    board = Board(shape=replace(SHAPES[shape], **changes), **own)
    simulation = Simulation([board], call_s=0)
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    rows: list[list[float]] = []
    todo = sorted(reads_s)

    def look() -> float:
        now_s = simulation.now_s()
        if todo and now_s >= todo[0] - 1e-9:
            todo.pop(0)
            counter_mj = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
            instant, average = pynvml.nvmlDeviceGetFieldValues(handle, [186, 185])
            truth = [
                simulation.true_energy_j(0),
                simulation.true_power_w(0),
                simulation.true_temperature_c(0),
            ]
            rows.append([now_s, counter_mj, instant.value.uiVal, average.value.uiVal, *truth])
        return todo[0] - now_s if todo else 1e9

    watch = simulation.watch(look)
    for pause_s, busy_w, busy_s, gap_w, gap_s, times in programme:
        simulation.sleep(pause_s)
        simulation.run(0, Work(busy_w=busy_w, busy_s=busy_s, gap_w=gap_w, gap_s=gap_s), int(times))
    if todo:
        simulation.sleep(max(0.0, todo[-1] - simulation.now_s()) + 1e-6)
    watch.stop()
    pynvml.nvmlShutdown()
    return {"rows": rows}


class Integrated:
    """The same board by Runge and Kutta's rule in small steps; energy in between by its derivative."""

    def __init__(self, board: Board, programme: Sequence[Sequence[float]], until_s: float) -> None:
        self.shape = board.shape
        shape = board.shape
        closed = shape.thermal_c_per_w * shape.leakage_w_per_c
        warm_c = shape.ambient_c + shape.thermal_c_per_w * (
            shape.idle_w - shape.leakage_w_per_c * shape.leakage_from_c
        )
        state = (shape.idle_w, warm_c / (1 - closed), 0.0)
        pieces = [(-3.0, shape.idle_w), (0.0, shape.idle_w)]
        for pause_s, busy_w, busy_s, gap_w, gap_s, times in programme:
            pieces.append((pieces[-1][0] + pause_s, shape.idle_w))
            for _ in range(int(times)):
                pieces.append((pieces[-1][0] + busy_s, busy_w))
                pieces.append((pieces[-1][0] + gap_s, gap_w))
        pieces.append((max(until_s, pieces[-1][0]) + 0.1, shape.idle_w))
        self.times_s, self.states = [-3.0], [state]
        for (start_s, _), (end_s, programmed_w) in pairwise(pieces):
            self._cross(start_s, end_s, programmed_w)
        self.zero_j = 0.0
        self.zero_j = self.energy_j(0.0)

    def _cross(self, start_s: float, end_s: float, programmed_w: float) -> None:
        steps = max(1, math.ceil((end_s - start_s) / LONGEST_STEP_S)) if end_s > start_s else 0
        if programmed_w == self.states[-1][0] == self.shape.idle_w and start_s < 0:
            steps = 30  # nothing changes before the start
        for number in range(steps):
            self.states.append(self._step(self.states[-1], programmed_w, (end_s - start_s) / steps))
            self.times_s.append(start_s + (number + 1) * (end_s - start_s) / steps)

    def _slopes(self, state: tuple[float, float, float], programmed_w: float) -> tuple[float, float, float]:
        shape, (drawn_w, warm_c, _) = self.shape, state
        power_w = drawn_w + shape.leakage_w_per_c * (warm_c - shape.leakage_from_c)
        heating = (shape.ambient_c + shape.thermal_c_per_w * power_w - warm_c) / shape.thermal_s
        return (programmed_w - drawn_w) / shape.rise_s, heating, power_w

    def _step(
        self, state: tuple[float, float, float], programmed_w: float, dt_s: float
    ) -> tuple[float, float, float]:
        def moved(slopes: tuple[float, float, float], part: float) -> tuple[float, float, float]:
            return tuple(value + slope * dt_s * part for value, slope in zip(state, slopes, strict=True))  # pyright: ignore[reportReturnType] - three in, three out

        first = self._slopes(state, programmed_w)
        second = self._slopes(moved(first, 0.5), programmed_w)
        third = self._slopes(moved(second, 0.5), programmed_w)
        fourth = self._slopes(moved(third, 1.0), programmed_w)
        mean = [(a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(first, second, third, fourth, strict=True)]
        return moved((mean[0], mean[1], mean[2]), 1.0)

    def _power_w(self, place: int) -> float:
        drawn_w, warm_c, _ = self.states[place]
        return drawn_w + self.shape.leakage_w_per_c * (warm_c - self.shape.leakage_from_c)

    def energy_j(self, at_s: float) -> float:
        right = min(max(1, bisect.bisect_left(self.times_s, at_s)), len(self.times_s) - 1)
        span_s = self.times_s[right] - self.times_s[right - 1]
        part = (at_s - self.times_s[right - 1]) / span_s
        before_j, after_j = self.states[right - 1][2], self.states[right][2]
        before_w, after_w = self._power_w(right - 1) * span_s, self._power_w(right) * span_s
        value = (
            (1 + 2 * part) * (1 - part) ** 2 * before_j
            + part * (1 - part) ** 2 * before_w
            + part**2 * (3 - 2 * part) * after_j
            + part**2 * (part - 1) * after_w
        )
        return value - self.zero_j

    def temperature_c(self, at_s: float) -> float:
        return self.states[min(bisect.bisect_left(self.times_s, at_s), len(self.states) - 1)][1]


def ticks(board: Board, now_s: float) -> Iterator[float]:
    """Of what has been published by now, from before the start on."""
    number = math.floor(-2 / board.shape.period_s)
    while (tick_s := board.phase_s + number * board.shape.period_s) + board.shape.lag_s <= now_s:
        yield tick_s
        number += 1


def published_w(board: Board, truth: Integrated, tick_s: float, span_s: float) -> float:
    return board.gain * (truth.energy_j(tick_s) - truth.energy_j(tick_s - span_s)) / span_s + board.offset_w


def published_j(board: Board, truth: Integrated, now_s: float) -> float:
    """Both counters start alike: with the true integral up to the first moment."""
    all_s = list(ticks(board, now_s))
    if board.counter == "integral":
        return board.counter_start_j + board.gain * truth.energy_j(all_s[-1]) + board.offset_w * all_s[-1]
    before_s = list(ticks(board, 0.0))[-1]
    counted_j = board.counter_start_j + board.gain * truth.energy_j(before_s) + board.offset_w * before_s
    for tick_s in all_s:
        if tick_s > before_s:
            counted_j += published_w(board, truth, tick_s, board.shape.boxcar_s) * board.shape.period_s
    return counted_j


def powers(lowest_w: float) -> st.SearchStrategy[float]:
    return st.floats(lowest_w, 700.0)


segments = st.tuples(
    st.floats(0.0, 0.3),
    powers(100.0),
    st.sampled_from([2e-5, 3e-4, 5e-3, 4e-2]),
    powers(50.0),
    st.sampled_from([0.0, 5e-6, 2e-4, 0.03]),
    st.integers(1, 12),
).map(list)
changes = st.fixed_dictionaries(
    {},
    optional={
        "rise_s": st.floats(1e-3, 2e-2),
        "thermal_s": st.floats(1.0, 60.0),
        "leakage_w_per_c": st.floats(0.0, 2.0),
        "period_s": st.floats(0.01, 0.15),
        "boxcar_s": st.floats(0.002, 0.12),
        "lag_s": st.floats(0.0, 0.05),
    },
)
owns = st.fixed_dictionaries(
    {
        "gain": st.floats(0.9, 1.1),
        "phase_s": st.floats(0.0, 0.1),
        "counter": st.sampled_from(["integral", "sampled"]),
    },
    optional={"offset_w": st.floats(-5.0, 5.0)},
)


@settings(max_examples=25)
@given(
    shape=st.sampled_from(sorted(SHAPES)),
    changes=changes,
    own=owns,
    programme=st.lists(segments, min_size=1, max_size=4),
    reads_s=st.lists(st.floats(0.0, 2.5), min_size=1, max_size=8, unique=True),
)
def test_what_is_drawn_and_published_is_what_the_equations_give(
    host: Host,
    shape: str,
    changes: dict[str, float],
    own: dict[str, Any],
    programme: list[list[float]],
    reads_s: list[float],
) -> None:
    board = Board(shape=replace(SHAPES[shape], **changes), **own)
    truth = Integrated(board, programme, max(reads_s))

    rows = host.call(play, shape=shape, changes=changes, own=own, programme=programme, reads_s=reads_s)[
        "rows"
    ]

    assert len(rows) == len(reads_s)
    for now_s, counter_mj, instant_mw, average_mw, energy_j, _power_w, temperature_c in rows:
        last_s = list(ticks(board, now_s))[-1]
        assert energy_j == pytest.approx(truth.energy_j(now_s), abs=2e-3)
        assert temperature_c == pytest.approx(truth.temperature_c(now_s), abs=0.05)
        if list(ticks(board, now_s - 1e-6))[-1] != list(ticks(board, now_s + 1e-6))[-1]:
            continue  # read at the very moment of publication
        assert counter_mj == pytest.approx(1e3 * published_j(board, truth, now_s), abs=4)
        assert instant_mw == pytest.approx(
            1e3 * published_w(board, truth, last_s, board.shape.boxcar_s), abs=400
        )
        if board.shape.averages:
            assert average_mw == pytest.approx(1e3 * published_w(board, truth, last_s, 1.0), abs=20)


def cut(programme: list[list[float]], cuts_s: list[float]) -> list[float]:
    """Runs segments while faults that change nothing come and go."""
    simulation = Simulation([Board(shape=A100)], call_s=0)
    for at_s in cuts_s:
        simulation.fault(
            Throttled(board=0, at_s=at_s, until_s=at_s + 3e-5, clock_factor=1.0, power_factor=1.0)
        )
    for pause_s, busy_w, busy_s, gap_w, gap_s, times in programme:
        simulation.sleep(pause_s)
        simulation.run(0, Work(busy_w=busy_w, busy_s=busy_s, gap_w=gap_w, gap_s=gap_s), int(times))
    truth = [simulation.now_s(), simulation.true_energy_j(0), simulation.true_power_w(0)]
    return [*truth, simulation.true_temperature_c(0)]


@settings(max_examples=40)
@given(
    programme=st.lists(segments, min_size=1, max_size=4),
    cuts_s=st.lists(st.floats(0.0, 2.0), max_size=20),
)
def test_cutting_work_into_pieces_changes_nothing(
    host: Host, programme: list[list[float]], cuts_s: list[float]
) -> None:
    whole = host.call(cut, programme=programme, cuts_s=[])

    assert host.call(cut, programme=programme, cuts_s=cuts_s) == pytest.approx(whole, rel=1e-6, abs=1e-6)


def instant_rise() -> list[float]:
    shape = replace(A100, rise_s=0.0, leakage_w_per_c=0.0, thermal_s=10.0, thermal_c_per_w=0.1)
    simulation = Simulation([Board(shape=shape)], call_s=0)
    simulation.run(0, Work(busy_w=380.0, busy_s=1e-4, gap_w=80.0, gap_s=1e-4), times=50_000)
    return [simulation.true_energy_j(0), simulation.true_temperature_c(0)]


def test_without_a_rise_time_power_is_the_programme(host: Host) -> None:
    energy_j, temperature_c = host.call(instant_rise)

    assert energy_j == pytest.approx(2300.0)
    assert temperature_c == pytest.approx(35 + 0.1 * 150 * (1 - math.exp(-1)), abs=1e-3)
