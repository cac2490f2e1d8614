"""Shares of a step's time, from a timer that interrupts it."""

import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from journal_rows import origin
from torch_steps import FakeClock, FunctionSystem

from magneton.profile.model import Profile
from magneton.record.assemble import read_journal
from magneton.record.journal import Journal
from magneton.record.scopes import TO_HOST
from magneton.record.survey import Sampler, survey
from magneton.workload import CALL

TICK_S = 1000.0  # no timer fires by itself: ticks are told by hand, at what the clock shows


class Engine:
    """Spends the time of a clock of ours; the timer's signal comes when it is handled."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock

    def prepare(self, ticks: float) -> None:
        self.spend(ticks)

    def sample(self, ticks: float) -> None:
        self.spend(ticks)

    def spend(self, ticks: float) -> None:
        self.clock.spend(ticks * TICK_S)
        signal.raise_signal(signal.SIGALRM)


TABLE = {"Engine.prepare": "input preparation", "Engine.sample": "sampling"}


def sampled(*steps: Callable[[Engine], object]) -> dict[str, tuple[float, int]]:
    """Seconds (in ticks) and samples per scope."""
    clock = FakeClock()
    sampler = Sampler(TABLE, tick_s=TICK_S, clock_s=clock)
    with sampler.listening():
        for step in steps:
            with sampler.sampling():
                step(Engine(clock))
    return {row.scope: (row.duration_s / TICK_S, row.samples) for row in sampler.rows(CALL)}


def of_ticks(preparing: float, sampling: float) -> Callable[[Engine], object]:
    return lambda engine: (engine.prepare(preparing), engine.sample(sampling))


def test_what_swallows_several_ticks_counts_for_all_of_them_and_is_one_sample():
    found = sampled(of_ticks(1.0, 3.0))
    assert found == {"sampling": (3.0, 1), "input preparation": (1.0, 1)}


def test_a_tick_is_told_once():
    assert sampled(lambda engine: (engine.prepare(1.5), engine.sample(0.25), engine.sample(0.25))) == {
        "input preparation": (1.0, 1),
        "sampling": (1.0, 1),
    }


def test_what_has_no_name_is_a_row_of_its_own():
    assert sampled(lambda engine: (engine.spend(1.0), engine.sample(1.0)))[""] == (1.0, 1)


def test_a_step_without_a_tick_has_no_rows():
    assert sampled(lambda engine: engine.prepare(0.5)) == {}


@given(st.lists(st.tuples(st.floats(0.01, 4), st.floats(0.01, 4)), min_size=1, max_size=20))
def test_rows_last_together_as_long_as_a_step(lengths: list[tuple[float, float]]):
    found = sampled(*(of_ticks(*step) for step in lengths))
    if found:
        mean = sum(map(sum, lengths)) / len(lengths)
        assert sum(duration for duration, _ in found.values()) == pytest.approx(mean)


def test_a_part_much_shorter_than_a_tick_is_met_as_often_as_it_lasts():
    """The long part must not take what the short one leaves of a tick, and the steps are all alike."""
    found = sampled(*[of_ticks(0.2, 5.0)] * 500)
    assert found["input preparation"][0] == pytest.approx(0.2, rel=0.05)


# --- with a real timer --------------------------------------------------------------------------------------


class Worker:
    """Knows how long it was where."""

    def __init__(self) -> None:
        self.spent_s = dict.fromkeys(("python", "operator", "small operators"), 0.0)
        self.matrix = torch.rand(150, 150)
        self.steps = 0

    def step(self) -> Mapping[str, Any]:
        self.steps += 1
        for part in (self.python, self.operator, self.small):
            part()
        return {}

    def python(self) -> None:
        started_s = time.perf_counter()
        sum(i * i for i in range(30_000))
        self.spent_s["python"] += time.perf_counter() - started_s

    def operator(self) -> None:
        started_s = time.perf_counter()
        torch.linalg.svdvals(self.matrix)
        self.spent_s["operator"] += time.perf_counter() - started_s

    def small(self) -> None:
        started_s = time.perf_counter()
        for _ in range(500):
            self.matrix[:4, :4].add(1)
        self.spent_s["small operators"] += time.perf_counter() - started_s


PARTS = {"Worker.python": "python", "Worker.operator": "operator", "Worker.small": "small operators"}


def surveyed(folder: Path, work: Callable[[], Mapping[str, Any]], table: Mapping[str, str]) -> Profile:
    with Journal(folder) as journal:
        journal.write_origin(origin())
        survey(FunctionSystem(work), CALL, 0.5, table, journal)
    return read_journal(folder)


def test_shares_are_those_of_the_clock(tmp_path: Path):
    worker = Worker()
    worker.step()  # the first calls of operators set things up
    worker.spent_s = dict.fromkeys(worker.spent_s, 0.0)
    worker.steps = 0
    profile = surveyed(tmp_path, worker.step, PARTS)

    total_s = sum(worker.spent_s.values())
    found = {row.scope: row for row in profile.scopes}
    step_s = total_s / worker.steps
    assert sum(row.duration_s for row in found.values()) == pytest.approx(step_s, rel=0.05)
    for part, spent_s in worker.spent_s.items():
        assert found[part].duration_s / step_s == pytest.approx(spent_s / total_s, abs=0.12)
    assert profile.doubts == ()


def test_the_signal_and_the_timer_are_left_as_they_were(tmp_path: Path):
    def fail() -> Mapping[str, Any]:
        raise ValueError("stop")

    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(ValueError, match="stop"):
        surveyed(tmp_path, fail, PARTS)
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_another_thread_cannot_be_surveyed(tmp_path: Path):
    found: list[Profile] = []
    thread = threading.Thread(target=lambda: found.append(surveyed(tmp_path, dict, PARTS)))
    thread.start()
    thread.join()
    (doubt,) = found[0].doubts
    assert doubt.kind == "not-surveyed"
    assert "main thread" in doubt.text
    assert found[0].scopes == ()


def test_a_timer_of_the_system_itself_is_left_alone(tmp_path: Path):
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        profile = surveyed(tmp_path, dict, PARTS)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert profile.scopes == ()
    assert "uses the interval timer itself" in profile.doubts[0].text


def test_waiting_for_the_device_has_a_name(tmp_path: Path):
    with Journal(tmp_path) as journal:
        journal.write_origin(origin())
        survey(FunctionSystem(dict), CALL, 0.1, PARTS, journal, synchronise=lambda: time.sleep(0.02))
    assert read_journal(tmp_path).scopes[0].scope == TO_HOST
