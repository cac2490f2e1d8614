"""Windows over a board's counter: exact at any phase of the counter, a gap where it cannot be read."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sensors import CODES, FakeBoard, FakeClock, FakeNvml

from magneton.meters.board import open_board
from magneton.meters.meter import Meter, Reading
from magneton.meters.nvml import NvmlMeter
from magneton.meters.sampler import PowerSampler
from magneton.meters.sensors import SensorUnusable
from magneton.quantity import Provenance


class Bench:
    """A board, its driver, a clock and a meter on them."""

    def __init__(self, **board: float | bool | int | None) -> None:
        self.clock = FakeClock()
        self.board = FakeBoard(**board)  # type: ignore[arg-type]  # fields of FakeBoard by name
        self.nvml = FakeNvml(self.clock, [self.board])
        self.meter = NvmlMeter(
            open_board(self.nvml.module(), 0), clock_s=self.clock.read_s, sleep=self.clock.sleep
        )

    def window(self, *, busy_w: float, duration_s: float, idle_w: float = 60.0) -> Reading:
        self.meter.begin()
        self.board.draw(self.clock, busy_w)
        self.clock.sleep(duration_s)
        self.board.draw(self.clock, idle_w)
        return self.meter.end()


@given(st.floats(0, 0.2), st.floats(2, 5), st.floats(60, 700))
@settings(deadline=None, max_examples=30)
def test_energy_is_exact_whatever_the_phase_of_the_counter(
    phase_s: float, duration_s: float, busy_w: float
) -> None:
    bench = Bench()
    bench.clock.sleep(phase_s)

    reading = bench.window(busy_w=busy_w, duration_s=duration_s)

    assert reading.duration_s == pytest.approx(duration_s)
    assert reading.energy_j == pytest.approx(busy_w * duration_s, rel=2e-3)  # one poll of 1 ms in 2 s


def test_windows_that_follow_each_other_do_not_mix() -> None:
    bench = Bench()

    hot = bench.window(busy_w=600.0, duration_s=2.0)
    bench.clock.sleep(0.037)
    mild = bench.window(busy_w=200.0, duration_s=2.03)

    assert hot.energy_j == pytest.approx(1200.0, rel=2e-3)
    assert mild.energy_j == pytest.approx(406.0, rel=2e-3)


def test_the_shortest_window_follows_the_update_period() -> None:
    assert Bench(period_s=0.05).meter.shortest_window_s == 2.0
    assert Bench(period_s=0.5).meter.shortest_window_s == pytest.approx(10.0, rel=0.01)


def test_a_window_far_too_short_is_a_gap() -> None:
    reading = Bench().window(busy_w=300.0, duration_s=0.5)

    assert reading.energy_j is None
    assert reading.duration_s == pytest.approx(0.5)


def test_a_board_lost_in_a_window_is_a_gap() -> None:
    bench = Bench()
    bench.meter.begin()
    bench.clock.sleep(3.0)
    bench.board.energy_error = CODES["NVML_ERROR_GPU_IS_LOST"]

    assert bench.meter.end().energy_j is None


def test_a_board_lost_before_a_window_is_a_gap() -> None:
    bench = Bench()
    bench.board.energy_error = CODES["NVML_ERROR_GPU_IS_LOST"]

    assert bench.window(busy_w=300.0, duration_s=3.0).energy_j is None


def test_a_counter_that_stops_is_a_gap() -> None:
    bench = Bench()

    assert bench.window(busy_w=0.0, duration_s=3.0, idle_w=0.0).energy_j is None


def test_a_board_without_a_counter_is_an_error_and_not_zero() -> None:
    with pytest.raises(SensorUnusable):
        Bench(energy_error=CODES["NVML_ERROR_NOT_SUPPORTED"])


def test_info_names_board_period_and_gain() -> None:
    info = Bench().meter.info()

    assert (info.name, info.unit, info.provenance) == ("nvml", "J", Provenance.MEASURED)
    assert (info.scale_low, info.scale_high) == (0.95, 1.05)
    assert "NVIDIA Fake (GPU-11111111-aaaa)" in info.source
    assert "every 100 ms" in info.source


def test_power_is_sampled_while_a_window_is_open() -> None:
    bench = Bench()
    meter: Meter = bench.meter

    bench.window(busy_w=300.0, duration_s=2.0)
    samples = meter.samples()

    assert len(samples) >= 2
    assert samples[0].power_w == 60.0
    assert samples[0].time_s < samples[-1].time_s
    assert meter.samples() == ()


def test_a_board_without_instant_power_has_no_samples() -> None:
    bench = Bench(instant=False)
    bench.window(busy_w=300.0, duration_s=2.0)

    assert bench.meter.samples() == ()


def test_close_lets_nvml_go() -> None:
    bench = Bench()
    assert bench.nvml.users == 1

    bench.meter.close()

    assert bench.nvml.users == 0


def test_the_sampler_samples_on_its_own() -> None:
    sampler = PowerSampler(lambda: 42.0, time.monotonic, period_s=0.002)

    sampler.start()
    time.sleep(0.1)
    sampler.stop()
    samples = sampler.take()
    time.sleep(0.02)

    assert len(samples) > 3
    assert {sample.power_w for sample in samples} == {42.0}
    assert sampler.take() == ()
