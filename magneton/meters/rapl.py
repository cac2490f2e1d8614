"""Processors and their memory through RAPL: what Linux shows under ``/sys/class/powercap``.

Windows are differences of counters that advance about once a millisecond, so a window of 0.2 s is known to
0.2 %. Energy is gross: the packages as a whole, with all that runs on them. Nothing is spawned;
while a window is open, a thread looks at the counters now and then, so that none wraps unseen.
"""

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import ClassVar

from magneton.meters.clock import Clock, SystemClock, Watch
from magneton.meters.meter import Reading, too_short
from magneton.meters.powercap import MEMORY, PLATFORM, POWERCAP, Zone, summed_zones
from magneton.meters.rollover import Rollover
from magneton.meters.sensors import SensorAbsent, SensorUnusable
from magneton.processor import CPUINFO
from magneton.profile.model import PowerSample
from magneton.profile.origin import MeterInfo
from magneton.quantity import Provenance

SHORTEST_S = 0.2
PERIODS = 200  # of the counters in the shortest window
CHANGES = 5  # of a counter, to know its period
STILL_S = 0.25  # a counter that has not moved by then does not
LOOK_S = 1e-4
_ENDS = 6**-0.5  # deviation of the difference of two ends, each late by a uniform part of a period

INTEL, AMD = "GenuineIntel", "AuthenticAMD"
GAIN = {INTEL: 0.05, AMD: 0.20}  # against a meter at the socket (arXiv 2108.00808)
UNKNOWN_GAIN = 0.20


class RaplMeter:
    """Windows over the sum of some zones. Opening it watches the counters for a few milliseconds."""

    variants: ClassVar[tuple[str, ...]] = ()

    def __init__(self, zones: Sequence[Zone], *, clock: Clock | None = None, vendor: str = "") -> None:
        self._clock = SystemClock() if clock is None else clock
        self._vendor = vendor
        periods_s = {zone.label: probe_period_s(zone, self._clock) for zone in zones}
        self._counters = tuple(
            Rollover(zone, self._clock) for zone in zones if periods_s[zone.label] is not None
        )
        if not any(MEMORY not in counter.zone.label for counter in self._counters):
            raise SensorUnusable(
                f"the energy counters {', '.join(periods_s)} do not move",
                hint="a virtual machine may show counters that it does not feed: use --meter modelled",
            )
        self._still = tuple(label for label, period_s in periods_s.items() if period_s is None)
        self.counter_period_s = max(period_s for period_s in periods_s.values() if period_s is not None)
        self.shortest_window_s = max(SHORTEST_S, PERIODS * self.counter_period_s)
        self._look_every_s = min(counter.look_every_s for counter in self._counters)
        self._watch: Watch | None = None
        self._began_s = 0.0

    @classmethod
    def open(cls, variant: str, device: str) -> "RaplMeter":
        del variant
        _refuse_boards(device)
        return cls.of_machine()

    @classmethod
    def check_device(cls, device: str) -> None:
        _refuse_boards(device)
        summed_zones(POWERCAP)

    @classmethod
    def of_machine(
        cls, root: Path = POWERCAP, *, cpuinfo: Path = CPUINFO, clock: Clock | None = None
    ) -> "RaplMeter":
        """All packages of this machine, whatever device the work runs on."""
        return cls(summed_zones(root), clock=clock, vendor=processor_vendor(cpuinfo))

    def info(self) -> MeterInfo:
        gain = GAIN.get(self._vendor, UNKNOWN_GAIN)
        return MeterInfo(
            name="rapl",
            unit="J",
            provenance=Provenance.MEASURED,
            scale_low=1 - gain,
            scale_high=1 + gain,
            source=self._source(),
            window_error=_ENDS * self.counter_period_s / self.shortest_window_s,
        )

    def begin(self, pieces: int = 1) -> None:
        del pieces
        self._stop_watching()  # of a window that was given up
        for counter in self._counters:
            counter.restart()
        self._began_s = self._clock.now_s()
        self._watch = self._clock.watch(self._look)

    def end(self) -> Reading:
        self._stop_watching()
        duration_s = self._clock.now_s() - self._began_s
        self._look()
        gap = self._gap(duration_s)
        energy_j = None if gap else sum(counter.energy_j for counter in self._counters)
        return Reading(duration_s=duration_s, energy_j=energy_j, gap=gap)

    def samples(self) -> tuple[PowerSample, ...]:
        return ()

    def close(self) -> None:
        """No thread is left."""
        self._stop_watching()

    def _look(self) -> float:
        for counter in self._counters:
            counter.look()
        return self._look_every_s

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.stop()
            self._watch = None

    def _gap(self, duration_s: float) -> str:
        if too_short(duration_s, self.shortest_window_s):
            return f"{duration_s:.3g} s are too short for RAPL, which needs {self.shortest_window_s:.3g} s"
        for counter in self._counters:
            if counter.gap:
                return counter.gap
            if counter.energy_j == 0.0:
                return f"the counter of {counter.zone.label} stood still for {duration_s:.3g} s"
        return ""

    def _source(self) -> str:
        labels = [counter.zone.label for counter in self._counters]
        text = (
            f"RAPL counters of {', '.join(labels)}, in steps of {self.counter_period_s * 1e3:.2g} ms; "
            "whatever else runs on them, neighbours included, is in it"
        )
        if labels == [PLATFORM]:
            text += "; the whole platform, as no package is shown"
        elif not any(label.endswith(f"/{MEMORY}") for label in labels):
            text += "; memory is not"
        if self._vendor == AMD:
            text += "; on AMD the figures are the firmware's model"
        if self._still:
            text += f"; left out, as they do not move: {', '.join(self._still)}"
        return text


def _refuse_boards(device: str) -> None:
    if device.partition(":")[0] != "cpu":
        raise SensorAbsent(
            f"RAPL reads processors, and the work runs on {device}",
            hint="use --meter nvml (NVIDIA) or zeus (AMD): processors are read beside them by themselves",
        )


def probe_period_s(zone: Zone, clock: Clock) -> float | None:
    """How often the counter advances; None for one that does not. A few milliseconds."""
    began_s = clock.now_s()
    last_uj = zone.energy_uj()
    changes_s: list[float] = []
    while len(changes_s) <= CHANGES and clock.now_s() - began_s < STILL_S:
        clock.sleep(LOOK_S)
        now_uj = zone.energy_uj()
        if now_uj != last_uj:
            changes_s.append(clock.now_s())
        last_uj = now_uj
    if not changes_s:
        return None
    return median([after - before for before, after in pairwise(changes_s)] or [STILL_S])


def processor_vendor(cpuinfo: Path = CPUINFO) -> str:
    """The processor's maker ("GenuineIntel", "AuthenticAMD"); "" where the kernel does not tell."""
    with suppress(OSError):
        for line in cpuinfo.read_text(errors="replace").splitlines():
            name, _, words = line.partition(":")
            if name.strip() == "vendor_id":
                return words.strip()
    return ""
