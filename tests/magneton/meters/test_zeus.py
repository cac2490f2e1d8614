"""Zeus's zero is not a reading, and its total leaves the processor out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from magneton.meters.meter import Meter
from magneton.meters.sensors import SensorAbsent
from magneton.meters.zeus import ZeusMeter
from magneton.quantity import Provenance


@dataclass(frozen=True, slots=True)
class FakeMeasurement:
    gpu_energy: Mapping[int, float]
    cpu_energy: Mapping[int, float] | None = None


@dataclass(slots=True)
class FakeMonitor:
    """Answers each window with the next measurement; refuses what ZeusMonitor refuses."""

    gpu_indices: Sequence[int] = ()
    cpu_indices: Sequence[int] = ()
    measurements: list[FakeMeasurement] = field(default_factory=list[FakeMeasurement])
    open_keys: set[str] = field(default_factory=set[str])

    def begin_window(self, key: str, sync_execution: bool = True) -> None:
        if key in self.open_keys:
            raise ValueError(f"Measurement window '{key}' already exists")
        if sync_execution:
            raise RuntimeError("no CUDA support")
        self.open_keys.add(key)

    def end_window(self, key: str, sync_execution: bool = True) -> FakeMeasurement:
        if sync_execution:
            raise RuntimeError("no CUDA support")
        self.open_keys.remove(key)
        return self.measurements.pop(0)


def energy_j(monitor: FakeMonitor) -> float | None:
    meter = ZeusMeter(monitor)
    meter.begin()
    return meter.end().energy_j


def test_boards_and_packages_are_summed() -> None:
    measurement = FakeMeasurement({1: 100.0}, {0: 20.0, 1: 30.0})

    assert energy_j(FakeMonitor([1], [0, 1], [measurement])) == 150.0


def test_a_monitor_without_sensors_is_an_error_and_not_zero() -> None:
    with pytest.raises(SensorAbsent, match="no sensor") as refused:
        ZeusMeter(FakeMonitor())
    assert "zeusd" in refused.value.hint


@pytest.mark.parametrize(
    "measurement",
    [
        FakeMeasurement({0: 100.0}, None),  # no permission for RAPL
        FakeMeasurement({0: 100.0}, {0: -4e5}),  # the counter wrapped
        FakeMeasurement({}, {0: 20.0}),
        FakeMeasurement({0: 0.0}, {0: 0.0}),  # nothing moved: too short for the counters
    ],
)
def test_a_missing_part_makes_a_gap(measurement: FakeMeasurement) -> None:
    assert energy_j(FakeMonitor([0], [0], [measurement])) is None


def test_durations_are_monotonic_and_windows_can_follow_each_other() -> None:
    times_s = iter((1.0, 3.5, 10.0, 11.0))
    monitor = FakeMonitor([0], [], [FakeMeasurement({0: 5.0}), FakeMeasurement({0: 7.0})])
    meter: Meter = ZeusMeter(monitor, wall_clock_s=lambda: next(times_s))

    meter.begin()
    one = meter.end()
    meter.begin()
    other = meter.end()

    assert (one.duration_s, one.energy_j) == (2.5, 5.0)
    assert (other.duration_s, other.energy_j) == (1.0, 7.0)
    assert meter.samples() == ()
    meter.close()


def test_info_says_what_is_summed() -> None:
    info = ZeusMeter(FakeMonitor([0], [0, 1])).info()

    assert (info.name, info.unit, info.provenance) == ("zeus", "J", Provenance.MEASURED)
    assert "GPU 0, CPU package 0, CPU package 1" in info.source
