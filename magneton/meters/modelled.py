"""Joules without a sensor: of the CPU time that was spent, or of a device that was never there.

``modelled`` is CPU-seconds of this process times the power of one core. A ratio of two such figures is a
ratio of CPU time and nothing else: the core power cancels. It sees neither vector width nor memory traffic
nor clocks, and every thread counts, those that spin as well.

``modelled:h200`` reads nothing at all: the joules of that device follow from what the operators do
(``magneton/profile/modelling.py``), wherever they ran.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from magneton.meters.devices import CPU, SUFFIX, Coefficient, device_names, read_device, read_model
from magneton.meters.meter import Meter, Reading
from magneton.meters.registry import FILE
from magneton.profile.device import DeviceModel
from magneton.profile.model import PowerSample
from magneton.profile.origin import MeterInfo
from magneton.quantity import Provenance

_NS = 1e-9


class ModelledMeter:
    """Cheap enough to wrap a single operator: each end of a window is two reads of a clock.

    The CPU clock is read last in ``begin`` and first in ``end``, so that what the window adds to its own
    reading is one call of the clock and not the bookkeeping.
    """

    __slots__ = ("_began_cpu_ns", "_began_wall_ns", "_cpu_clock_ns", "_device", "_power", "_wall_clock_ns")

    variants: ClassVar[tuple[str, ...]] = (CPU, *device_names(), FILE)
    shortest_window_s: float = 0.0

    def __init__(
        self,
        core_power_w: Coefficient,
        *,
        device: str = "cpu",
        cpu_clock_ns: Callable[[], int] = time.process_time_ns,
        wall_clock_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self._power = core_power_w
        self._device = device
        self._cpu_clock_ns = cpu_clock_ns
        self._wall_clock_ns = wall_clock_ns
        self._began_wall_ns = 0
        self._began_cpu_ns = 0

    @classmethod
    def open(cls, variant: str, device: str) -> Meter:
        if variant != CPU:
            return DeviceMeter(read_model(variant), name=Path(variant).name.removesuffix(SUFFIX))
        return cls(read_device(variant).core_power_w, device=device)

    @classmethod
    def check_file(cls, variant: str) -> None:
        read_model(variant)

    def info(self) -> MeterInfo:
        source = (
            f"CPU-seconds of the worker x {self._power.value:g} W per core; a ratio is a ratio of CPU time"
        )
        if not self._device.startswith("cpu"):
            source += f"; what {self._device} itself spends is not in it"
        return MeterInfo(
            name="modelled",
            unit="J",
            provenance=Provenance.MODELLED,
            scale_low=self._power.low / self._power.value,
            scale_high=self._power.high / self._power.value,
            source=source,
        )

    def begin(self, pieces: int = 1) -> None:
        del pieces
        self._began_wall_ns = self._wall_clock_ns()
        self._began_cpu_ns = self._cpu_clock_ns()

    def end(self) -> Reading:
        cpu_ns = self._cpu_clock_ns() - self._began_cpu_ns
        wall_ns = self._wall_clock_ns() - self._began_wall_ns
        return Reading(duration_s=wall_ns * _NS, energy_j=cpu_ns * _NS * self._power.value)

    def samples(self) -> tuple[PowerSample, ...]:
        return ()

    def close(self) -> None:
        """Nothing is held."""


class DeviceMeter:
    """Names the device whose joules are wanted; windows are timed and hold no energy."""

    shortest_window_s: float = 0.0

    def __init__(
        self, model: DeviceModel, *, name: str, wall_clock_s: Callable[[], float] = time.perf_counter
    ) -> None:
        self._model = model
        self._name = name
        self._wall_clock_s = wall_clock_s
        self._began_s = 0.0

    def info(self) -> MeterInfo:
        return MeterInfo(
            name=f"modelled:{self._name}",
            unit="J",
            provenance=Provenance.MODELLED,
            source=(
                f"what a model of {self._model.name} makes of the operators' FLOPs and bytes, with the ranges"
                " of its coefficients; launches and all else between operators cost nothing in it"
            ),
            device=self._model,
        )

    def begin(self, pieces: int = 1) -> None:
        del pieces
        self._began_s = self._wall_clock_s()

    def end(self) -> Reading:
        return Reading(
            duration_s=self._wall_clock_s() - self._began_s,
            energy_j=None,
            gap="modelled from counts, not read",
        )

    def samples(self) -> tuple[PowerSample, ...]:
        return ()

    def close(self) -> None:
        """Nothing is held."""
