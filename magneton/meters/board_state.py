"""What a board is like at a moment: temperature, clock, why its clock is held down, who else is there."""

from collections.abc import Callable
from typing import Any, TypeVar

from magneton.meters.board import Board
from magneton.meters.foreign import Kin, foreign_processes
from magneton.meters.meter import State

# Bits of NVML's reasons. That a board is idle holds nothing down.
_IDLE = 0x1
_REASONS = {
    0x2: "application-clocks",
    0x4: "sw-power-cap",
    0x8: "hw-slowdown",
    0x10: "sync-boost",
    0x20: "sw-thermal",
    0x40: "hw-thermal",
    0x80: "hw-power-brake",
    0x100: "display-clock",
}
# At the power limit a board still does what it is meant to do; these say that something is wrong with it.
DISTURBING = frozenset({"hw-slowdown", "sw-thermal", "hw-thermal", "hw-power-brake"})
# NVML reports this one for a moment too when a clock changes, which is how each window begins and ends.
FLEETING = "hw-slowdown"

_TEMPERATURE_GPU = 0
_CLOCK_SM = 1
_MEGA = 1e6

T = TypeVar("T")


def read_state(board: Board, kin: Kin) -> State:
    """What the board's sensors tell now; what they do not is None."""
    nvml, handle = board.nvml, board.handle
    temperature_c = _told(nvml, lambda: float(nvml.nvmlDeviceGetTemperature(handle, _TEMPERATURE_GPU)))
    clock_hz = _told(nvml, lambda: nvml.nvmlDeviceGetClockInfo(handle, _CLOCK_SM) * _MEGA)
    return State(
        temperature_c=temperature_c,
        clock_hz=clock_hz,
        throttle=throttle_reasons(board),
        foreign=count_foreign(board, kin),
    )


def throttle_reasons(board: Board) -> tuple[str, ...]:
    """Why clocks are held down, in kebab-case; empty for no reason, and where the board does not tell."""
    nvml = board.nvml
    for name in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
        read: Any = getattr(nvml, name, None)
        bits = None if read is None else _told(nvml, lambda read=read: int(read(board.handle)))
        if bits is not None:
            return _names(bits & ~_IDLE)
    return ()


def count_foreign(board: Board, kin: Kin) -> int | None:
    """Processes of others that compute on the board; None where that cannot be told."""
    nvml = board.nvml
    pids = _told(
        nvml, lambda: {int(each.pid) for each in nvml.nvmlDeviceGetComputeRunningProcesses(board.handle)}
    )
    return None if pids is None else foreign_processes(pids, kin)


def _names(bits: int) -> tuple[str, ...]:
    known = tuple(name for bit, name in _REASONS.items() if bits & bit)
    rest = bits & ~sum(_REASONS)
    return (*known, f"reason-{rest:#x}") if rest else known


def _told(nvml: Any, read: Callable[[], T]) -> T | None:
    """None where the board refuses: a window is not worth less for want of a thermometer."""
    try:
        return read()
    except nvml.NVMLError:
        return None
