"""Zeus's zero is no reading, and its total leaves parts out: what becomes of a measurement of its monitor."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from powercap_tree import TurnedClock

from magneton.meters.meter import Meter, Reading
from magneton.meters.sensors import SensorAbsent
from magneton.meters.zeus import ZeusMeter
from magneton.meters.zeus_sensors import ZeusSensors
from magneton.quantity import Provenance


class SensorLost(Exception):
    """What the fake monitor raises, as Zeus raises an error of its own."""


@dataclass(frozen=True, slots=True)
class FakeMeasurement:
    gpu_energy: Mapping[int, float]
    cpu_energy: Mapping[int, float] | None = None
    dram_energy: Mapping[int, float] | None = None
    soc_energy: object | None = None


@dataclass(slots=True)
class FakeMonitor:
    """Answers each window with the next measurement, or raises it; refuses what ZeusMonitor refuses."""

    measurements: list[FakeMeasurement | Exception] = field(default_factory=list[FakeMeasurement | Exception])
    open_keys: set[str] = field(default_factory=set[str])

    def begin_window(self, key: str, sync_execution: bool = True, restart: bool = False) -> None:
        if key in self.open_keys and not restart:
            raise ValueError(f"Measurement window '{key}' already exists")
        if sync_execution:
            raise RuntimeError("no CUDA support")
        self.open_keys.add(key)

    def end_window(self, key: str, sync_execution: bool = True) -> FakeMeasurement:
        if sync_execution:
            raise RuntimeError("no CUDA support")
        measurement = self.measurements.pop(0)
        if isinstance(measurement, Exception):
            raise measurement
        self.open_keys.remove(key)
        return measurement


@dataclass(frozen=True, slots=True)
class FakeChip:
    """Millijoules, as Zeus has them for a system on a chip."""

    cpu_total_mj: int | None = None
    gpu_mj: int | None = None
    ane_mj: int | None = None
    total_energy_mj: float | None = None


def sensors(
    *measurements: FakeMeasurement | Exception, boards: Mapping[int, str] | None = None, **found: Any
) -> ZeusSensors:
    windows = FakeMonitor(list(measurements))
    return ZeusSensors(windows=windows, boards=boards or {}, faults=(SensorLost,), **found)


def reading(found: ZeusSensors, length_s: float = 3.0) -> Reading:
    clock = TurnedClock()
    return window(ZeusMeter(found, clock=clock), clock, length_s)


def window(meter: Meter, clock: TurnedClock, length_s: float = 3.0) -> Reading:
    meter.begin()
    clock.sleep(length_s)
    return meter.end()


def test_processors_and_their_memory_are_summed() -> None:
    measured = FakeMeasurement({}, {0: 20.0, 1: 30.0}, {1: 4.0})

    read = reading(sensors(measured, packages=(0, 1), memory=(1,)))

    assert (read.energy_j, read.host_energy_j, read.gap) == (54.0, None, "")


def test_on_a_board_the_processors_are_beside_it_and_not_in_it() -> None:
    measured = FakeMeasurement({1: 100.0, 2: 50.0}, {0: 20.0}, {0: 5.0})

    read = reading(sensors(measured, boards={1: "A", 2: "B"}, packages=(0,), memory=(0,)))

    assert (read.energy_j, read.host_energy_j) == (150.0, 25.0)


@pytest.mark.parametrize("processors", [None, {0: -4e5}, {0: 0.0}])
def test_a_gap_of_the_host_does_not_void_the_board(processors: Mapping[int, float] | None) -> None:
    read = reading(sensors(FakeMeasurement({0: 100.0}, processors), boards={0: "A"}, packages=(0,)))

    assert (read.energy_j, read.host_energy_j, read.gap) == (100.0, None, "")
    assert "processor 0" in read.host_gap


@pytest.mark.parametrize(
    ("fields", "chip", "energy_j"),
    [
        (("total_energy_mj",), FakeChip(cpu_total_mj=700, total_energy_mj=9000.0), 9.0),
        (("cpu_total_mj", "gpu_mj", "ane_mj"), FakeChip(cpu_total_mj=700, gpu_mj=300, ane_mj=0), 1.0),
        (("cpu_total_mj", "gpu_mj"), FakeChip(cpu_total_mj=700), None),
        (("cpu_total_mj", "gpu_mj"), FakeChip(cpu_total_mj=700, gpu_mj=-300), None),
        (("cpu_total_mj", "gpu_mj"), FakeChip(cpu_total_mj=0, gpu_mj=0), None),
        (("total_energy_mj",), None, None),
    ],
)
def test_a_chip_is_read_as_a_whole(
    fields: tuple[str, ...], chip: FakeChip | None, energy_j: float | None
) -> None:
    read = reading(sensors(FakeMeasurement({}, soc_energy=chip), soc_fields=fields))

    assert read.energy_j == energy_j
    assert bool(read.gap) == (energy_j is None)


@pytest.mark.parametrize(
    ("measured", "reason"),
    [
        (FakeMeasurement({}, None), "no reading of processor 0"),
        (FakeMeasurement({}, {0: -4e5}, {0: 1.0}), "wrapped or was reset"),
        (FakeMeasurement({}, {0: 20.0}, None), "no reading of memory of processor 0"),
        (FakeMeasurement({}, {0: 0.0}, {0: 1.0}), "stood still"),
        (FakeMeasurement({}, {0: 20.0}, {0: 0.0}), "stood still"),
        (FakeMeasurement({}, {0: float("nan")}, {0: 1.0}), "no reading"),
        (SensorLost("the zone is gone"), "lost a sensor: the zone is gone"),
    ],
)
def test_a_missing_part_makes_a_gap_with_its_reason(
    measured: FakeMeasurement | Exception, reason: str
) -> None:
    read = reading(sensors(measured, packages=(0,), memory=(0,)))

    assert read.energy_j is None
    assert reason in read.gap
    assert read.duration_s == pytest.approx(3.0)


def test_a_lost_sensor_may_come_back() -> None:
    clock = TurnedClock()
    meter: Meter = ZeusMeter(sensors(SensorLost(), FakeMeasurement({}, {0: 7.0}), packages=(0,)), clock=clock)

    lost, back = window(meter, clock), window(meter, clock)

    assert (lost.energy_j, lost.gap) == (None, "Zeus lost a sensor: SensorLost")
    assert (back.energy_j, back.gap) == (7.0, "")
    assert meter.samples() == ()
    meter.close()


def test_a_short_window_is_a_gap() -> None:
    read = reading(sensors(FakeMeasurement({0: 5.0}), boards={0: "A"}), length_s=0.5)

    assert read.energy_j is None
    assert "too short" in read.gap


def test_what_finds_nothing_is_no_meter() -> None:
    with pytest.raises(SensorAbsent, match="no sensor"):
        ZeusMeter(sensors())


def test_info_says_what_is_summed_and_by_which_way() -> None:
    meter = ZeusMeter(
        sensors(boards={0: "MI300X"}, packages=(0, 1), memory=(1,), relay="zeusd (ZEUSD_SOCK_PATH=/run/z)")
    )
    info, host = meter.info(), meter.host_info()

    assert (info.name, info.unit, info.provenance) == ("zeus", "J", Provenance.MEASURED)
    assert "MI300X (board 0), read by Zeus through zeusd (ZEUSD_SOCK_PATH=/run/z)" in info.source
    assert "processor" not in info.source
    assert host is not None
    assert "processor 0, processor 1 with its memory" in host.source
    assert ZeusMeter(sensors(packages=(0,))).host_info() is None
