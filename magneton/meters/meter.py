"""What a meter promises. Meters run inside the worker: NumPy and nvidia-ml-py at most."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from magneton.profile.model import PowerSample
from magneton.profile.origin import MeterInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a device was like at one moment. None: its sensor does not tell."""

    temperature_c: float | None = None
    clock_hz: float | None = None  # of what computes: the streaming multiprocessors of a board
    throttle: tuple[str, ...] = ()  # why clocks are held down; kebab-case
    foreign: int | None = None  # processes of others at work on the device


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One window. ``energy_j`` is None where it was not read or must not be used, and ``gap`` says why.

    ``host_energy_j`` is what the host spent meanwhile, by a sensor or model of its own; it is never in
    ``energy_j``. ``host_gap`` says why it is None where a host is read. ``agreement`` is the energy by
    another sensor of the same device over ``energy_j``.
    """

    duration_s: float
    energy_j: float | None
    gap: str = ""
    host_energy_j: float | None = None
    host_gap: str = ""
    agreement: float | None = None
    before: State | None = None
    after: State | None = None


class Meter(Protocol):
    """Reads energy over windows: ``begin(pieces)``, the work, ``end()``. Windows do not nest.

    The work is ``pieces`` equal repetitions of something, one right after the other; a sensor that answers
    slowly may then read the power in the middle of them. 1: one piece of which nothing is known.
    ``shortest_window_s`` is the shortest window that the meter reads with meaning: 0.0 for a clock
    fine enough to read a single operator in place; work shorter than this has to be repeated.
    """

    shortest_window_s: float

    def info(self) -> MeterInfo: ...

    def begin(self, pieces: int = 1) -> None: ...

    def end(self) -> Reading: ...

    def samples(self) -> tuple[PowerSample, ...]:
        """Instantaneous power since the last call, where the sensor offers it; else empty."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Periodic(Protocol):
    """What a meter may say of itself besides: its sensor publishes every so many seconds."""

    @property
    def update_period_s(self) -> float: ...


@runtime_checkable
class Losable(Protocol):
    """What a meter may say of itself besides: why its sensor is gone for good; "" while it is there."""

    @property
    def lost(self) -> str: ...


def too_short(duration_s: float, shortest_window_s: float) -> bool:
    """A plan may miss the length that a meter needs by a little, and by no more than half."""
    return 2 * duration_s < shortest_window_s


def update_period_s(meter: Meter) -> float:
    """0.0 for a meter that does not say."""
    return meter.update_period_s if isinstance(meter, Periodic) else 0.0


def why_lost(meter: Meter) -> str:
    """Empty for a meter whose sensor is there, or that does not say."""
    return meter.lost if isinstance(meter, Losable) else ""
