"""Windows over boards: exact at any phase of the counter, and a gap with its reason where they are not."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sensors import CODES, FakeBoard, FakeClock, FakeNvml

from magneton.meters.meter import Meter, Reading, State
from magneton.meters.nvml import NvmlMeter, open_nvml, refuse_boards_without_counter
from magneton.meters.sensors import SensorUnusable
from magneton.quantity import Provenance

LOST = CODES["NVML_ERROR_GPU_IS_LOST"]
MANY, FEW = 1000, 1


class Bench:
    """Boards, their driver, a clock and a meter on them."""

    def __init__(self, *boards: FakeBoard, probes: Path | None = None, visible: str | None = None) -> None:
        self.clock = FakeClock()
        self.boards: Sequence[FakeBoard] = boards or (FakeBoard(),)
        self.nvml = FakeNvml(self.clock, self.boards)
        environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
        device = ",".join(f"cuda:{index}" for index in range(len(self.boards)))
        self.meter: NvmlMeter = open_nvml(
            self.nvml.module(), device, self.clock, environment=environment, probes=probes
        )

    @property
    def board(self) -> FakeBoard:
        return self.boards[0]

    def draw(self, power_w: float) -> None:
        for board in self.boards:
            board.draw(self.clock, power_w)

    def window(
        self, *, busy_w: float = 300.0, duration_s: float = 2.0, idle_w: float = 60.0, pieces: int = MANY
    ) -> Reading:
        self.meter.begin(pieces)
        self.draw(busy_w)
        self.clock.sleep(duration_s)
        self.draw(idle_w)
        return self.meter.end()


@pytest.mark.parametrize("pieces", [MANY, FEW])
@given(st.floats(0, 0.2), st.floats(2, 5), st.floats(60, 700))
@settings(deadline=None, max_examples=30)
def test_energy_is_exact_whatever_the_phase_of_the_counter(
    pieces: int, phase_s: float, duration_s: float, busy_w: float
) -> None:
    bench = Bench()
    bench.clock.sleep(phase_s)

    reading = bench.window(busy_w=busy_w, duration_s=duration_s, pieces=pieces)

    assert reading.gap == ""
    assert reading.duration_s == pytest.approx(duration_s)
    assert reading.energy_j == pytest.approx(busy_w * duration_s, rel=2e-3)  # one poll of 1 ms in 2 s


@pytest.mark.parametrize("pieces", [MANY, FEW])
def test_windows_that_follow_each_other_do_not_mix(pieces: int) -> None:
    bench = Bench()

    hot = bench.window(busy_w=600.0, duration_s=2.0, pieces=pieces)
    bench.clock.sleep(0.037)
    mild = bench.window(busy_w=200.0, duration_s=2.03, pieces=pieces)

    assert hot.energy_j == pytest.approx(1200.0, rel=2e-3)
    assert mild.energy_j == pytest.approx(406.0, rel=2e-3)


def test_many_pieces_wait_for_nothing() -> None:
    bench = Bench()
    before_s = bench.clock.now_s()
    bench.window(duration_s=2.0)

    assert bench.clock.now_s() - before_s == pytest.approx(2.0)
    assert not bench.clock.watched


def test_few_pieces_begin_at_even_phases_of_the_period() -> None:
    bench = Bench()
    phases: list[float] = []
    for _ in range(8):
        bench.meter.begin(FEW)
        phases.append(bench.clock.now_s() % 0.1)
        bench.clock.sleep(2.0)
        bench.meter.end()

    around = [*sorted(phases), min(phases) + 0.1]
    assert max(after - before for before, after in pairwise(around)) < 0.03


def test_looks_are_few() -> None:
    bench = Bench()
    before = bench.nvml.reads
    bench.window(duration_s=2.0)

    assert bench.nvml.reads - before < 20 * 8 + 100


def test_the_shortest_window_follows_the_update_period() -> None:
    assert Bench(FakeBoard(period_s=0.05)).meter.shortest_window_s == 2.0
    slow = Bench(FakeBoard(period_s=0.5)).meter
    assert slow.shortest_window_s == pytest.approx(10.0, rel=0.01)
    assert slow.update_period_s == pytest.approx(0.5, rel=0.01)


def test_one_piece_is_read_by_the_slowest_sensor_too() -> None:
    bench = Bench(FakeBoard(period_s=1.9))
    reading = bench.window(duration_s=40.0, pieces=FEW)

    assert reading.gap == ""
    assert reading.energy_j == pytest.approx(300.0 * 40.0, rel=2e-3)


def test_a_window_far_too_short_is_a_gap() -> None:
    reading = Bench().window(duration_s=0.4)

    assert (reading.energy_j, reading.duration_s) == (None, pytest.approx(0.4))
    assert reading.gap == "the window lasted 0.4 s; the sensor of this board needs 2 s"


@pytest.mark.parametrize("pieces", [MANY, FEW])
def test_a_board_lost_in_a_window_is_a_gap_and_later_ones_wait_for_nothing(pieces: int) -> None:
    bench = Bench()
    bench.meter.begin(pieces)
    bench.clock.sleep(1.0)
    bench.board.energy_error = bench.board.field_error = bench.board.state_error = LOST
    bench.clock.sleep(2.0)
    reading = bench.meter.end()

    assert reading.energy_j is None
    assert "cannot read the energy counter of NVIDIA Fake" in reading.gap
    assert bench.meter.lost == reading.gap
    before_s = bench.clock.now_s()
    assert bench.window(duration_s=2.0, pieces=pieces).gap == reading.gap
    assert bench.clock.now_s() - before_s == pytest.approx(2.0)


def test_permission_that_comes_back_gives_readings_again() -> None:
    bench = Bench()
    bench.board.energy_error = CODES["NVML_ERROR_NO_PERMISSION"]
    refused = bench.window()
    bench.board.energy_error = None

    assert (refused.energy_j, refused.gap[:24]) == (None, "no permission to read th")
    assert bench.meter.lost == ""
    assert bench.window().energy_j == pytest.approx(600.0, rel=2e-3)


@pytest.mark.parametrize("pieces", [MANY, FEW])
def test_a_counter_that_is_reset_is_a_gap(pieces: int) -> None:
    bench = Bench()
    bench.meter.begin(pieces)
    bench.clock.sleep(1.0)
    bench.board.offset_j -= 1000.0
    bench.clock.sleep(1.5)
    reading = bench.meter.end()

    assert reading.energy_j is None
    assert "it was reset" in reading.gap


@pytest.mark.parametrize("pieces", [MANY, FEW])
def test_a_counter_that_freezes_is_a_gap(pieces: int) -> None:
    bench = Bench()
    bench.meter.begin(pieces)
    bench.board.frozen_from_s = bench.clock.now_s() + 1.0
    bench.clock.sleep(4.0)
    reading = bench.meter.end()

    assert (reading.energy_j, reading.gap) == (None, "the energy counter stood still for 2 s")
    assert len(bench.meter.samples()) > 20  # power goes on


def test_a_counter_that_loses_half_a_second_is_a_gap() -> None:
    bench = Bench()
    bench.meter.begin(MANY)
    bench.draw(300.0)
    bench.clock.sleep(1.0)
    bench.board.frozen_from_s = bench.clock.now_s()
    bench.clock.sleep(0.5)
    bench.board.frozen_from_s = float("inf")
    bench.board.offset_j -= 150.0
    bench.clock.sleep(1.0)

    assert bench.meter.end().gap.startswith("the energy counter stood still for 0.")


def test_a_counter_that_falls_behind_power_is_a_gap() -> None:
    bench = Bench()
    assert bench.window().agreement == pytest.approx(1.0, abs=0.01)
    bench.board.instant_gain = 1.5
    reading = bench.window()

    assert reading.energy_j is None
    assert reading.agreement == pytest.approx(1.5, rel=0.01)
    assert "1.50 of that by the counter" in reading.gap


def test_a_board_whose_sensors_always_disagree_is_read_and_says_so() -> None:
    bench = Bench(FakeBoard(instant_gain=2.0))
    info = bench.meter.info()

    assert bench.window().energy_j == pytest.approx(600.0, rel=2e-3)
    assert (info.scale_low, info.scale_high) == (pytest.approx(0.95), pytest.approx(2.1, rel=0.02))
    assert "its power sensor shows 2.0" in info.source


@pytest.mark.parametrize(
    ("reasons", "gap"),
    [
        (0x4, ""),
        (0x8 | 0x80, "the clocks of NVIDIA Fake were held down: hw-power-brake, hw-slowdown"),
        (0x20, "the clocks of NVIDIA Fake were held down: sw-thermal"),
    ],
)
def test_clocks_held_down_within_a_window_reject_it(reasons: int, gap: str) -> None:
    bench = Bench()
    bench.meter.begin(MANY)
    bench.draw(300.0)
    bench.clock.sleep(1.0)
    bench.board.reasons = reasons
    bench.clock.sleep(0.3)
    bench.board.reasons = 0
    bench.clock.sleep(1.0)
    reading = bench.meter.end()

    assert reading.gap == gap
    assert (reading.energy_j is None) == bool(gap)


def test_a_slowdown_that_comes_with_a_change_of_clocks_is_none() -> None:
    bench = Bench()
    bench.meter.begin(MANY)
    bench.clock.sleep(2.0)
    bench.board.reasons = 0x8
    reading = bench.meter.end()

    assert reading.gap == ""
    assert reading.after is not None and reading.after.throttle == ("hw-slowdown",)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("NVML_ERROR_NO_PERMISSION", "no permission"),
        ("NVML_ERROR_NOT_SUPPORTED", "does not offer the energy counter"),
        ("NVML_ERROR_GPU_IS_LOST", "cannot read"),
    ],
)
def test_a_board_whose_counter_cannot_be_read_is_refused_without_watching_it(code: str, told: str) -> None:
    clock = FakeClock()
    nvml = FakeNvml(clock, (FakeBoard(), FakeBoard(uuid="GPU-2", energy_error=CODES[code])))
    began_s = clock.now_s()

    refuse_boards_without_counter(nvml.module(), "cuda:0", environment={})
    with pytest.raises(SensorUnusable, match=told):
        refuse_boards_without_counter(nvml.module(), "cuda:0,cuda:1", environment={})
    assert (nvml.users, clock.now_s()) == (0, began_s)


def wait(bench: Bench) -> None:
    bench.clock.sleep(0.1)


def lose(bench: Bench) -> None:
    bench.board.energy_error = bench.board.field_error = LOST


def withdraw(bench: Bench) -> None:
    bench.board.energy_error = CODES["NVML_ERROR_NO_PERMISSION"]


def reset(bench: Bench) -> None:
    bench.board.offset_j = -bench.board.spent_j(bench.clock.now_s())


def roll_back(bench: Bench) -> None:
    bench.board.offset_j -= 700.0


def freeze(bench: Bench) -> None:
    bench.board.frozen_from_s = bench.clock.now_s()


def throttle(bench: Bench) -> None:
    bench.board.reasons = 0x40


def share(bench: Bench) -> None:
    bench.board.pids = (os.getpid(), 1)


def rest(bench: Bench) -> None:
    bench.draw(0.0)


@given(
    st.sampled_from([wait, lose, withdraw, reset, roll_back, freeze, throttle, share, rest]),
    st.floats(0, 3),
    st.floats(0, 3),
    st.sampled_from([1, 3, 8, 1000]),
)
@settings(deadline=None, max_examples=60)
def test_a_window_has_energy_or_a_reason_and_never_nothing(
    event: Callable[[Bench], None], before_s: float, after_s: float, pieces: int
) -> None:
    bench = Bench()
    bench.meter.begin(pieces)
    bench.draw(300.0)
    bench.clock.sleep(before_s)
    event(bench)
    bench.clock.sleep(after_s)
    reading = bench.meter.end()

    assert (reading.energy_j is None) == bool(reading.gap)
    assert reading.energy_j is None or reading.energy_j > 0
    assert not bench.clock.watched


def test_what_the_board_was_like_is_told() -> None:
    bench = Bench()
    bench.meter.begin(MANY)
    bench.clock.sleep(2.0)
    bench.board.temperature_c, bench.board.reasons = 63.0, 0x4
    reading = bench.meter.end()

    assert reading.before == State(temperature_c=41.0, clock_hz=1.41e9, throttle=(), foreign=0)
    assert reading.after == State(temperature_c=63.0, clock_hz=1.41e9, throttle=("sw-power-cap",), foreign=0)


def test_a_foreign_process_rejects_the_window() -> None:
    bench = Bench()
    bench.meter.begin(MANY)
    bench.clock.sleep(0.5)
    bench.board.pids = (os.getpid(), 1)
    bench.clock.sleep(1.5)
    bench.board.pids = (os.getpid(),)
    bench.clock.sleep(0.5)
    reading = bench.meter.end()

    assert (reading.energy_j, reading.gap) == (None, "1 foreign process computed on NVIDIA Fake")


def test_processes_of_another_namespace_reject_nothing() -> None:
    reading = Bench(FakeBoard(pids=(1,))).window()

    assert reading.energy_j is not None
    assert reading.after is not None and reading.after.foreign is None


def test_looks_that_come_late_cost_precision_and_no_more() -> None:
    bench = Bench()
    bench.clock.late_s = 0.011
    reading = bench.window()

    assert reading.energy_j == pytest.approx(600.0, rel=0.01)


@pytest.mark.parametrize(("late_s", "gap"), [(0.3, "were seen too late"), (0.7, "changed too seldom")])
def test_looks_that_hardly_come_are_a_gap(late_s: float, gap: str) -> None:
    bench = Bench()
    bench.clock.late_s = late_s
    reading = bench.window()

    assert reading.energy_j is None
    assert gap in reading.gap


def test_a_counter_that_polling_disturbs_is_replaced_by_power() -> None:
    bench = Bench(FakeBoard(hold_s=0.5))
    info = bench.meter.info()

    assert bench.window().energy_j == pytest.approx(600.0, rel=5e-3)
    few = bench.window(pieces=FEW)
    assert few.energy_j == pytest.approx(600.0, rel=0.03)
    assert few.agreement == pytest.approx(1.0, abs=0.1)  # of the work, not of the rest around it
    assert info.source.startswith("instantaneous power of NVIDIA Fake")
    assert info.window_error >= Bench().meter.info().window_error


def test_a_board_without_a_counter_is_an_error_and_not_zero() -> None:
    board = FakeBoard(energy_error=CODES["NVML_ERROR_NOT_SUPPORTED"])
    clock = FakeClock()
    nvml = FakeNvml(clock, [board])

    with pytest.raises(SensorUnusable):
        open_nvml(nvml.module(), "cuda:0", clock, environment={}, probes=None)
    assert nvml.users == 0


def test_info_names_board_period_and_gain() -> None:
    info = Bench().meter.info()

    assert (info.name, info.unit, info.provenance) == ("nvml", "J", Provenance.MEASURED)
    assert (info.scale_low, info.scale_high) == (0.95, 1.05)
    assert "NVIDIA Fake (GPU-11111111-aaaa)" in info.source
    assert "every 100 ms" in info.source
    assert 0 < info.window_error < 2e-3


def test_boards_are_probed_once(tmp_path: Path) -> None:
    first = Bench(probes=tmp_path)
    second = Bench(probes=tmp_path)

    assert second.meter.probes == first.meter.probes
    assert first.clock.now_s() > second.clock.now_s() == 1000.0


def two() -> tuple[FakeBoard, FakeBoard]:
    return FakeBoard(uuid="GPU-1"), FakeBoard(uuid="GPU-2", period_s=0.07)


@pytest.mark.parametrize("pieces", [MANY, FEW])
def test_several_boards_are_summed(pieces: int) -> None:
    bench = Bench(*two())
    reading = bench.window(pieces=pieces)

    assert reading.energy_j == pytest.approx(1200.0, rel=2e-3)
    assert reading.agreement == pytest.approx(1.0, abs=0.02)
    assert reading.after == State(temperature_c=41.0, clock_hz=1.41e9, throttle=(), foreign=0)
    assert "GPU-1" in bench.meter.info().source and "GPU-2" in bench.meter.info().source
    assert {sample.power_w for sample in bench.meter.samples()} == {600.0}


def test_power_of_boards_is_summed_for_the_same_moments() -> None:
    """One board tells no power in the first of two windows: its later figures belong to no earlier ones."""
    bench = Bench(*two())
    bench.boards[1].field_error = CODES["NVML_ERROR_NO_PERMISSION"]
    bench.window(busy_w=300.0)
    bench.boards[1].field_error = None
    bench.clock.sleep(1.0)
    began_s = bench.clock.now_s()
    bench.window(busy_w=500.0)
    samples = bench.meter.samples()

    assert 17 <= len(samples) <= 23
    assert {sample.power_w for sample in samples} == {1000.0}
    assert samples[0].time_s > began_s


def test_a_gap_on_one_board_is_a_gap() -> None:
    bench = Bench(*two())
    bench.boards[1].reasons = 0x40
    reading = bench.window()

    assert reading.energy_j is None
    assert reading.gap == "the clocks of NVIDIA Fake were held down: hw-thermal"
    assert reading.after is not None and reading.after.throttle == ("hw-thermal",)


def test_power_is_sampled_while_a_window_is_open() -> None:
    bench = Bench()
    meter: Meter = bench.meter

    bench.window(duration_s=2.0)
    samples = meter.samples()

    assert 17 <= len(samples) <= 23
    assert {sample.power_w for sample in samples} == {300.0}
    assert samples[0].time_s < samples[-1].time_s
    assert meter.samples() == ()


def test_a_board_without_instant_power_has_no_samples() -> None:
    bench = Bench(replace(FakeBoard(), instant=False))
    reading = bench.window()

    assert bench.meter.samples() == ()
    assert reading.energy_j == pytest.approx(600.0, rel=2e-3)
    assert reading.agreement is None


def test_close_lets_nvml_go() -> None:
    bench = Bench(*two())
    assert bench.nvml.users == 2

    bench.meter.begin(MANY)
    bench.meter.close()

    assert bench.nvml.users == 0
    assert not bench.clock.watched
