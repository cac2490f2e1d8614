"""What a meter promises. Meters run inside the worker: NumPy and nvidia-ml-py at most."""

from dataclasses import dataclass
from typing import Protocol

from magneton.profile.model import PowerSample
from magneton.profile.origin import MeterInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One window. ``energy_j`` is None where the meter could not read it (too short, sensor gone)."""

    duration_s: float
    energy_j: float | None


class Meter(Protocol):
    """Reads energy over windows: ``begin()``, the work, ``end()``. Windows do not nest.

    ``shortest_window_s`` is the shortest window that the meter reads with meaning: 0.0 for a clock
    fine enough to read a single operator in place; work shorter than this has to be repeated.
    """

    shortest_window_s: float

    def info(self) -> MeterInfo: ...

    def begin(self) -> None: ...

    def end(self) -> Reading: ...

    def samples(self) -> tuple[PowerSample, ...]:
        """Instantaneous power since the last call, where the sensor offers it; else empty."""
        ...

    def close(self) -> None: ...
