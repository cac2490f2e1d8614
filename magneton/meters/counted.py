"""Counts instead of joules: noise-free, the same on every machine, and blind to how well the work is done.

The counts are in the profile's operators already (docs/measuring.md says how they are taken), so this
meter reads no energy at all: it says which of them stands for the cost.
"""

import time
from collections.abc import Callable
from typing import ClassVar, Literal

from magneton.meters.meter import Reading
from magneton.profile.model import PowerSample
from magneton.profile.origin import MeterInfo, Unit
from magneton.quantity import Provenance

Variant = Literal["bytes", "flops", "operators"]

_UNITS: dict[str, tuple[Unit, str]] = {
    "bytes": ("B", "distinct bytes that each operator reads and writes, counted from shapes"),
    "flops": ("FLOP", "arithmetic of each operator, counted from shapes"),
    "operators": ("operators", "operators executed, whatever they cost"),
}


class CountedMeter:
    """Times windows and leaves their energy unread; ``unit`` names the count that stands for the cost."""

    variants: ClassVar[tuple[str, ...]] = tuple(_UNITS)
    shortest_window_s: float = 0.0

    def __init__(self, variant: Variant = "bytes", *, wall_clock_s: Callable[[], float] = time.perf_counter):
        self._variant = variant
        self._wall_clock_s = wall_clock_s
        self._began_s = 0.0

    @classmethod
    def open(cls, variant: str, device: str) -> "CountedMeter":
        del device  # counts come from shapes
        return cls(next(known for known in ("bytes", "flops", "operators") if known == variant))

    def info(self) -> MeterInfo:
        unit, source = _UNITS[self._variant]
        return MeterInfo(
            name=f"counted:{self._variant}", unit=unit, provenance=Provenance.COUNTED, source=source
        )

    def begin(self, pieces: int = 1) -> None:
        del pieces
        self._began_s = self._wall_clock_s()

    def end(self) -> Reading:
        return Reading(duration_s=self._wall_clock_s() - self._began_s, energy_j=None)

    def samples(self) -> tuple[PowerSample, ...]:
        return ()

    def close(self) -> None:
        """Nothing is held."""
