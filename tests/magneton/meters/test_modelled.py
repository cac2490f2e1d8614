"""CPU-seconds times a core power, cheap enough for single operators; a device that follows from counts."""

import shutil
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magneton.configs import config_path
from magneton.meters.devices import device_names, read_device, read_model
from magneton.meters.meter import Meter
from magneton.meters.modelled import DeviceMeter, ModelledMeter
from magneton.meters.registry import open_meter, require_meter
from magneton.profile.device import Coefficient
from magneton.quantity import Provenance

FIVE_WATTS = Coefficient(value=5.0, low=2.5, high=10.0, source="a test")


class Clocks:
    """A CPU clock and a wall clock that a test turns apart."""

    def __init__(self) -> None:
        self.cpu_ns = 0
        self.wall_ns = 0

    def meter(self, power_w: float = 5.0) -> ModelledMeter:
        return ModelledMeter(
            Coefficient(value=power_w, low=power_w / 2, high=power_w * 2, source="a test"),
            cpu_clock_ns=lambda: self.cpu_ns,
            wall_clock_ns=lambda: self.wall_ns,
        )


def test_energy_is_cpu_time_and_duration_is_wall_time() -> None:
    clocks = Clocks()
    meter = clocks.meter(power_w=5.0)

    meter.begin()
    clocks.cpu_ns += 2_000_000_000
    clocks.wall_ns += 3_000_000_000
    reading = meter.end()

    assert reading.duration_s == pytest.approx(3.0)
    assert reading.energy_j == pytest.approx(10.0)


def test_what_happens_between_windows_is_in_none() -> None:
    clocks = Clocks()
    meter = clocks.meter()

    meter.begin()
    meter.end()
    clocks.cpu_ns += 10**9
    clocks.wall_ns += 10**9
    meter.begin()
    reading = meter.end()

    assert (reading.duration_s, reading.energy_j) == (0.0, 0.0)


@given(st.integers(0, 10**12), st.floats(0.1, 100))
def test_k_times_the_power_gives_k_times_the_energy(cpu_ns: int, k: float) -> None:
    energies_j: list[float] = []
    for power_w in (3.0, 3.0 * k):
        clocks = Clocks()
        meter = clocks.meter(power_w)
        meter.begin()
        clocks.cpu_ns += cpu_ns
        reading = meter.end()
        assert reading.energy_j is not None
        energies_j.append(reading.energy_j)

    assert energies_j[1] == pytest.approx(k * energies_j[0])


def test_info_says_what_the_figure_is_made_of() -> None:
    info = ModelledMeter(FIVE_WATTS).info()

    assert (info.name, info.unit, info.provenance) == ("modelled", "J", Provenance.MODELLED)
    assert (info.scale_low, info.scale_high) == (0.5, 2.0)
    assert info.source == "CPU-seconds of the worker x 5 W per core; a ratio is a ratio of CPU time"


def test_on_a_board_info_says_what_is_missing() -> None:
    info = ModelledMeter(FIVE_WATTS, device="cuda:0").info()

    assert "what cuda:0 itself spends is not in it" in info.source


def test_the_shipped_core_power_spans_a_factor_of_two() -> None:
    power = read_device("cpu").core_power_w

    assert (power.value / power.low, power.high / power.value) == (2.0, 2.0)
    assert power.source


def test_real_work_costs_more_than_waiting() -> None:
    meter: Meter = ModelledMeter.open("cpu", "cpu")

    meter.begin()
    time.sleep(0.05)
    waited = meter.end()
    meter.begin()
    sum(k * k for k in range(300_000))
    worked = meter.end()

    assert waited.energy_j is not None
    assert worked.energy_j is not None
    assert waited.duration_s >= 0.05
    assert waited.energy_j < 0.5 * worked.energy_j
    assert meter.samples() == ()
    meter.close()


def test_a_window_adds_little_to_what_it_reads() -> None:
    meter = ModelledMeter(FIVE_WATTS)

    def empty_window_s() -> float:
        meter.begin()
        reading = meter.end()
        assert reading.energy_j is not None
        return reading.energy_j / 5.0

    assert min(empty_window_s() for _ in range(2000)) < 2e-6


@pytest.mark.parametrize("name", device_names())
def test_a_device_is_named_and_nothing_is_read(name: str) -> None:
    meter = open_meter(f"modelled:{name}", "cpu")
    info = meter.info()

    assert (info.name, info.unit, info.provenance) == (f"modelled:{name}", "J", Provenance.MODELLED)
    assert info.device == read_model(name)
    assert info.follows_from_counts
    assert read_model(name).name in info.source
    meter.begin()
    reading = meter.end()
    assert reading.energy_j is None
    assert reading.gap
    assert meter.samples() == ()
    meter.close()


def test_windows_of_a_device_are_timed() -> None:
    now_s = iter([1.0, 3.5])
    meter = DeviceMeter(read_model("a100"), name="a100", wall_clock_s=lambda: next(now_s))

    meter.begin()

    assert meter.end().duration_s == 2.5


def test_cpu_seconds_stay_what_modelled_means() -> None:
    info = open_meter("modelled", "cpu").info()

    assert ModelledMeter.variants[0] == "cpu"
    assert info.device is None
    assert not info.follows_from_counts


def test_a_file_of_the_users_is_a_device_by_its_name(tmp_path: Path) -> None:
    shutil.copy(config_path("devices", "a100"), tmp_path / "mine.toml")

    require_meter(f"modelled:{tmp_path}/mine.toml")
    info = open_meter(f"modelled:{tmp_path}/mine.toml", "cpu").info()

    assert info.name == "modelled:mine"
    assert info.device == read_model("a100")
