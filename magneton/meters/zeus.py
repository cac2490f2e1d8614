"""What Zeus can read: NVIDIA and AMD boards, and CPU packages through RAPL.

Zeus answers 0 J where it finds no sensor; that is an error here. It sums boards only, so boards and
packages are summed explicitly, and ``info().source`` says which. The caller synchronises the device.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, Protocol

from magneton.meters.meter import Reading
from magneton.meters.sensors import SensorAbsent
from magneton.profile.model import PowerSample
from magneton.profile.origin import MeterInfo
from magneton.quantity import Provenance

SHORTEST_S = 2.0  # Zeus aligns no window with the counter's edges: 20 periods of the usual 100 ms
GAIN = 0.05
_WINDOW = "magneton"


class ZeusMeasurement(Protocol):
    """Joules by index, None for what Zeus could not read."""

    @property
    def gpu_energy(self) -> Mapping[int, float]: ...

    @property
    def cpu_energy(self) -> Mapping[int, float] | None: ...


class ZeusWindows(Protocol):
    """The part of ``zeus.monitor.ZeusMonitor`` that is used."""

    @property
    def gpu_indices(self) -> Sequence[int]: ...

    @property
    def cpu_indices(self) -> Sequence[int]: ...

    def begin_window(self, key: str, sync_execution: bool = True) -> None: ...

    def end_window(self, key: str, sync_execution: bool = True) -> ZeusMeasurement: ...


class ZeusMeter:
    """Windows of a Zeus monitor. Durations are ours: Zeus takes them from the wall clock, which may jump."""

    variants: ClassVar[tuple[str, ...]] = ()
    shortest_window_s: float = SHORTEST_S

    def __init__(
        self, monitor: ZeusWindows, *, wall_clock_s: Callable[[], float] = time.perf_counter
    ) -> None:
        if not monitor.gpu_indices and not monitor.cpu_indices:
            raise SensorAbsent(
                "Zeus finds no sensor that may be read here",
                hint="RAPL needs root or zeusd, boards need their driver; or use --meter modelled",
            )
        self._monitor = monitor
        self._wall_clock_s = wall_clock_s
        self._began_s = 0.0

    @classmethod
    def open(cls, variant: str, device: str) -> "ZeusMeter":
        del variant
        return cls(_load_monitor(device))

    def info(self) -> MeterInfo:
        boards = [f"GPU {index}" for index in self._monitor.gpu_indices]
        packages = [f"CPU package {index}" for index in self._monitor.cpu_indices]
        return MeterInfo(
            name="zeus",
            unit="J",
            provenance=Provenance.MEASURED,
            scale_low=1 - GAIN,
            scale_high=1 + GAIN,
            source=f"sum over {', '.join(boards + packages)}, read by Zeus; nothing else is in it",
        )

    def begin(self, pieces: int = 1) -> None:
        del pieces
        self._monitor.begin_window(_WINDOW, sync_execution=False)
        self._began_s = self._wall_clock_s()

    def end(self) -> Reading:
        duration_s = self._wall_clock_s() - self._began_s
        measurement = self._monitor.end_window(_WINDOW, sync_execution=False)
        boards_j = [measurement.gpu_energy.get(index) for index in self._monitor.gpu_indices]
        packages = measurement.cpu_energy or {}
        packages_j = [packages.get(index) for index in self._monitor.cpu_indices]
        return Reading(duration_s=duration_s, energy_j=_sum_j(boards_j + packages_j))

    def samples(self) -> tuple[PowerSample, ...]:
        return ()

    def close(self) -> None:
        """Zeus keeps its helper processes until the worker ends."""


def _sum_j(energies_j: Sequence[float | None]) -> float | None:
    """The sum; None if a part is missing or negative (a wrapped counter), or if no counter moved at all."""
    known = [energy_j for energy_j in energies_j if energy_j is not None and energy_j >= 0]
    if len(known) < len(energies_j) or not any(known):
        return None
    return sum(known)


def _load_monitor(device: str) -> ZeusWindows:
    kind, _, ordinal = device.partition(":")
    try:
        monitor_type: Any = import_module("zeus.monitor").ZeusMonitor
    except ModuleNotFoundError as error:
        raise SensorAbsent(
            f"the meter zeus needs the package {error.name}, which is not installed",
            hint="pip install 'magneton[zeus]'",
        ) from error
    try:
        return monitor_type(gpu_indices=[int(ordinal or "0")] if kind == "cuda" else [])
    except ValueError as error:
        raise SensorAbsent(
            f"Zeus does not see {device}: {error}", hint="python -m zeus.show_env lists what Zeus sees"
        ) from error
