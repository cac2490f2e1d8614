"""A meter that measures, for workers: 50 W on the device, 10 W on the host, in windows of half a millisecond.

It is found through an entry point in a folder on the worker's path (``offer``). Variants are its moods.
"""

import os
import time
from pathlib import Path
from typing import ClassVar

from magneton.meters.meter import Reading, State
from magneton.meters.sensors import SensorUnusable
from magneton.profile.model import PowerSample
from magneton.profile.origin import MeterInfo
from magneton.quantity import Provenance

POWER_W, HOST_W = 50.0, 10.0
HOT = "thermal throttling"


def offer(folder: Path) -> Path:
    """Write down that there is such a meter; ``folder`` then has to be on the path."""
    info = folder / "toy_meter-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-meter\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[magneton.meters]\ntoy = toy_meter:ToyMeter\n")
    return folder


class ToyMeter:
    """``hot``: every other window that is long enough is spoilt. ``lost``: gone once ``TOY_GONE`` exists."""

    variants: ClassVar[tuple[str, ...]] = ("steady", "hot", "lost")
    shortest_window_s = 0.0005
    update_period_s = 0.0001

    def __init__(self, mood: str) -> None:
        self._mood = mood
        self._windows = 0
        self._began_s = 0.0

    @classmethod
    def open(cls, variant: str, device: str) -> "ToyMeter":
        del device
        return cls(variant)

    def info(self) -> MeterInfo:
        return MeterInfo(name=f"toy:{self._mood}", unit="J", provenance=Provenance.MEASURED)

    def begin(self, pieces: int = 1) -> None:
        del pieces
        self._began_s = time.monotonic()

    def end(self) -> Reading:
        duration_s = time.monotonic() - self._began_s
        if duration_s < self.shortest_window_s:
            return Reading(duration_s=duration_s, energy_j=None, gap="too short")
        self._windows += 1
        if self._mood == "lost" and Path(os.environ["TOY_GONE"]).exists():
            raise SensorUnusable("the toy is broken", hint="buy another")
        if self._mood == "hot" and self._windows % 2:
            return Reading(duration_s=duration_s, energy_j=None, gap=HOT)
        return Reading(
            duration_s=duration_s,
            energy_j=POWER_W * duration_s,
            host_energy_j=HOST_W * duration_s,
            before=State(temperature_c=40.0),
            after=State(temperature_c=41.0),
        )

    def samples(self) -> tuple[PowerSample, ...]:
        return ()

    def close(self) -> None:
        """Nothing is held."""
