"""What Zeus reads: boards of NVIDIA and AMD, processors through RAPL or its daemon, Apple's chips and Jetson.

Zeus answers 0 J where a counter stood still and nothing where one may not be read; both are gaps here, and
what is summed is said in ``info().source``. On a board the reading is the board, and the processors
beside it are ``host_energy_j``. The caller synchronises the device.
"""

import math
from collections.abc import Iterable, Sequence
from typing import ClassVar

from magneton.meters.clock import Clock, SystemClock
from magneton.meters.meter import Reading, too_short
from magneton.meters.rapl import GAIN as RAPL_GAIN
from magneton.meters.rapl import UNKNOWN_GAIN, processor_vendor
from magneton.meters.sensors import SensorAbsent
from magneton.meters.zeus_sensors import WINDOW, ZeusMeasurement, ZeusSensors, end_helpers, open_sensors
from magneton.profile.model import PowerSample
from magneton.profile.origin import MeterInfo
from magneton.quantity import Provenance

UPDATE_S = 0.1  # the slowest usual counter: boards
SHORTEST_S = 20 * UPDATE_S  # Zeus aligns no window with the counter's edges
UNALIGNED = 0.02  # of such a window: the counter lags where the work begins (docs/measuring.md, nvml)
_MILLI = 1e-3

Part = tuple[str, float | None]


class ZeusMeter:
    """Windows of a Zeus monitor. Durations are ours: Zeus takes them from the wall clock, which may jump."""

    variants: ClassVar[tuple[str, ...]] = ()
    shortest_window_s: float = SHORTEST_S

    def __init__(self, sensors: ZeusSensors, *, clock: Clock | None = None, vendor: str = "") -> None:
        if not sensors.boards and not sensors.packages and not sensors.soc_fields:
            raise SensorAbsent("Zeus finds no sensor", hint="use --meter modelled")
        self._sensors = sensors
        self.update_period_s = UPDATE_S if sensors.boards or sensors.soc_fields else 0.0
        self._clock = SystemClock() if clock is None else clock
        self._vendor = vendor
        self._began_s = 0.0
        self._gap = ""

    @classmethod
    def open(cls, variant: str, device: str) -> "ZeusMeter":
        del variant
        return cls(open_sensors(device), vendor=processor_vendor())

    def info(self) -> MeterInfo:
        sensors = self._sensors
        if sensors.boards:
            names = [f"{name} (board {index})" for index, name in sensors.boards.items()]
            return self._info(names, sensors.gain, UNALIGNED)
        if sensors.soc_fields:
            return self._info(sensors.soc_fields, sensors.gain, UNALIGNED)
        return self._packages_info()

    @property
    def reads_host(self) -> bool:
        """Whether what the processors spend is in its readings already: as the host's, or as the chip's."""
        return bool(self._sensors.packages or self._sensors.soc_fields)

    def host_info(self) -> MeterInfo | None:
        """What ``host_energy_j`` is made of; None where the readings have none."""
        return self._packages_info() if self._sensors.boards and self._sensors.packages else None

    def begin(self, pieces: int = 1) -> None:
        del pieces
        self._gap = ""
        try:
            self._sensors.windows.begin_window(WINDOW, sync_execution=False, restart=True)
        except self._sensors.faults as error:
            self._gap = f"Zeus could not begin a window: {str(error) or type(error).__name__}"
        self._began_s = self._clock.now_s()

    def end(self) -> Reading:
        duration_s = self._clock.now_s() - self._began_s
        measurement = None if self._gap else self._measurement()
        if too_short(duration_s, SHORTEST_S):
            self._gap = (
                self._gap or f"{duration_s:.3g} s are too short for Zeus, which needs {SHORTEST_S:g} s"
            )
        if measurement is None or self._gap:
            return Reading(duration_s=duration_s, energy_j=None, gap=self._gap)
        energy_j, gap = _sum_j(self._own(measurement))
        host_j, host_gap = _sum_j(self._processors(measurement)) if self.host_info() else (None, "")
        return Reading(
            duration_s=duration_s, energy_j=energy_j, gap=gap, host_energy_j=host_j, host_gap=host_gap
        )

    def samples(self) -> tuple[PowerSample, ...]:
        return ()

    def close(self) -> None:
        """No process that Zeus started is left."""
        end_helpers(self._sensors.helpers)

    def _measurement(self) -> ZeusMeasurement | None:
        try:
            return self._sensors.windows.end_window(WINDOW, sync_execution=False)
        except self._sensors.faults as error:
            self._gap = f"Zeus lost a sensor: {str(error) or type(error).__name__}"
            return None

    def _own(self, measurement: ZeusMeasurement) -> Iterable[Part]:
        sensors = self._sensors
        if sensors.boards:
            return [(f"board {index}", measurement.gpu_energy.get(index)) for index in sensors.boards]
        if sensors.soc_fields:
            return [("the chip", _chip_j(measurement.soc_energy, sensors.soc_fields))]
        return self._processors(measurement)

    def _processors(self, measurement: ZeusMeasurement) -> Iterable[Part]:
        packages, memory = measurement.cpu_energy or {}, measurement.dram_energy or {}
        for index in self._sensors.packages:
            yield f"processor {index}", packages.get(index)
        for index in self._sensors.memory:
            yield f"memory of processor {index}", memory.get(index)

    def _packages_info(self) -> MeterInfo:
        names = [
            f"processor {index}{' with its memory' if index in self._sensors.memory else ''}"
            for index in self._sensors.packages
        ]
        return self._info(names, RAPL_GAIN.get(self._vendor, UNKNOWN_GAIN), 0.0)

    def _info(self, parts: Sequence[str], gain: float, window_error: float) -> MeterInfo:
        relay = f" through {self._sensors.relay}" if self._sensors.relay else ""
        return MeterInfo(
            name="zeus",
            unit="J",
            provenance=Provenance.MEASURED,
            scale_low=1 - gain,
            scale_high=1 + gain,
            source=f"sum over {', '.join(parts)}, read by Zeus{relay}; nothing else is in it",
            window_error=window_error,
        )


def _sum_j(parts: Iterable[Part]) -> tuple[float | None, str]:
    """The sum, or None and why: a part that is missing, stood still or went down makes it worthless."""
    total_j = 0.0
    for name, energy_j in parts:
        if energy_j is None or not math.isfinite(energy_j):
            return None, f"Zeus gave no reading of {name}"
        if energy_j < 0:
            return None, f"Zeus read {energy_j:.3g} J of {name}: its counter wrapped or was reset"
        if energy_j == 0:
            return None, f"Zeus read 0 J of {name}: its counter stood still"
        total_j += energy_j
    return total_j, ""


def _chip_j(measured: object | None, fields: Sequence[str]) -> float | None:
    """The fields together, of which some may well be 0 (an engine at rest); None if one is missing."""
    parts_mj: list[float | None] = [getattr(measured, field, None) for field in fields]
    known_mj = [part_mj for part_mj in parts_mj if part_mj is not None and part_mj >= 0]
    return sum(known_mj) * _MILLI if len(known_mj) == len(fields) else None
