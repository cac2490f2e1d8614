"""What is found out about a machine: plain data for reports."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from magneton.meters.probe import BoardProbe

State = Literal["ok", "absent", "unusable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What a device is like at this moment. None: its sensors do not tell."""

    power_w: float | None
    temperature_c: float | None = None
    clock_hz: float | None = None
    throttle: tuple[str, ...] = ()  # why clocks are held down; empty where nothing holds them
    processes: int | None = None  # that compute on it; none of them is ours


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked at, and what to do about it. None where a figure was not probed or has no meaning.

    ``resolution_j`` is one step of a counter at the power of the moment. ``probe`` is a board's.
    """

    name: str
    state: State
    detail: str
    advice: str = ""
    reads: str = ""  # what its figures are made of
    update_period_s: float | None = None
    resolution_j: float | None = None
    shortest_window_s: float | None = None  # that may be believed
    gain: float | None = None  # how far the scale may be off, relative
    probe: BoardProbe | None = None
    now: Conditions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """``trust`` says in sentences what figures from here are worth.

    ``meters`` is what ``--meter auto`` takes, by kind of device ("cpu", "cuda"; the latter only where a board
    is known). ``meter`` is the one for a board where it can be read, else for the CPU.
    """

    machine: tuple[Check, ...]
    sensors: tuple[Check, ...]
    models: tuple[Check, ...]
    packages: tuple[Check, ...]
    meter: str
    meters: Mapping[str, str]
    trust: tuple[str, ...]
