"""What can go wrong with simulated boards: values that ``Simulation`` and ``environment`` take.

Each begins at ``at_s`` (seconds since the start; None: at once) or after that many further calls, and lasts
until ``until_s``, or for good. ``board`` is an NVML index; None is every board and the library itself.
"""

from dataclasses import dataclass, fields
from enum import IntEnum, IntFlag
from typing import ClassVar

from simulated_shapes import record

EVERYTHING = "*"


class Code(IntEnum):
    """NVML's."""

    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    DRIVER_NOT_LOADED = 9
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15
    UNKNOWN = 999


class Reason(IntFlag):
    """NVML's bits for why clocks are lower than asked for."""

    SW_POWER_CAP = 0x4
    HW_SLOWDOWN = 0x8
    SW_THERMAL = 0x20
    HW_THERMAL = 0x40
    POWER_BRAKE = 0x80


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One of the kinds below."""

    kind: ClassVar[str]
    board: int | None = None
    at_s: float | None = None
    until_s: float | None = None
    after_calls: int | None = None

    def text(self) -> str:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        given = {name: value for name, value in values.items() if value is not None}
        return record("fault", {"kind": self.kind} | given)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFails(Fault):
    """``target``: a function without its version suffix, a field ("field:186"), or ``EVERYTHING``."""

    kind: ClassVar[str] = "error"
    target: str
    code: Code


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterReset(Fault):
    """The counter starts again from zero, at the first tick from then on."""

    kind: ClassVar[str] = "reset"


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterRollback(Fault):
    """The counter falls back once, by this many joules."""

    kind: ClassVar[str] = "rollback"
    amount: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterFrozen(Fault):
    """The counter stands still; afterwards it catches up, unless it loses what was spent meanwhile."""

    kind: ClassVar[str] = "freeze"
    loses: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttled(Fault):
    """Work takes longer by 1 / clock_factor and draws less above idle."""

    kind: ClassVar[str] = "throttle"
    reasons: Reason = Reason.HW_THERMAL
    clock_factor: float = 0.7
    power_factor: float = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignProcess(Fault):
    """Somebody else's compute process, and what it draws."""

    kind: ClassVar[str] = "foreign"
    power_w: float = 100.0
    pid: int = 4242
    memory_bytes: float = 2.0**30


@dataclass(frozen=True, slots=True, kw_only=True)
class AmbientShift(Fault):
    """Warmer air by ``amount`` degrees: temperature and leakage drift to follow."""

    kind: ClassVar[str] = "ambient"
    amount: float


def gpu_lost(board: int, *, at_s: float | None = None, after_calls: int | None = None) -> CallFails:
    return CallFails(
        board=board, target=EVERYTHING, code=Code.GPU_IS_LOST, at_s=at_s, after_calls=after_calls
    )


def driver_missing() -> CallFails:
    return CallFails(target="nvmlInit", code=Code.DRIVER_NOT_LOADED)
