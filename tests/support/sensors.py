"""Sensors that need no hardware: a clock that a test turns, and an NVML whose boards follow it.

``FakeNvml.module()`` has the functions of ``pynvml`` that magneton calls, and its error codes. Boards draw
the power that the test sets, and publish the integral of it every ``period_s``, as real counters do.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Protocol


class FakeClock:
    """Monotonic seconds; sleeping is how time passes, and looks come while it does."""

    def __init__(self, at_s: float = 1000.0) -> None:
        self._at_s = at_s
        self._watches: list[FakeWatch] = []
        self.late_s = 0.0  # by how much each look comes later than it asked for

    def now_s(self) -> float:
        return self._at_s

    def read_s(self) -> float:
        return self._at_s

    def sleep(self, duration_s: float) -> None:
        until_s = self._at_s + duration_s
        while True:
            due = min(self._watches, key=attrgetter("due_s"), default=None)
            if due is None or due.due_s > until_s:
                break
            self._at_s = max(self._at_s, due.due_s)
            due.look_now()
        self._at_s = max(self._at_s, until_s)

    def watch(self, look: Callable[[], float]) -> "FakeWatch":
        watch = FakeWatch(self, look)
        self._watches.append(watch)
        watch.look_now()
        return watch

    def drop(self, watch: "FakeWatch") -> None:
        self._watches = [each for each in self._watches if each is not watch]

    @property
    def watched(self) -> bool:
        """Whether anything still looks."""
        return bool(self._watches)


class FakeWatch:
    """A look on a ``FakeClock``."""

    def __init__(self, clock: FakeClock, look: Callable[[], float]) -> None:
        self._clock = clock
        self._look = look
        self.due_s = clock.now_s()

    def look_now(self) -> None:
        wait_s = self._look()
        assert wait_s > 0, "a look that is never over"
        self.due_s = self._clock.now_s() + wait_s + self._clock.late_s

    def stop(self) -> None:
        self._clock.drop(self)


@dataclass(slots=True)
class FakeBoard:
    """One board. ``power_w`` is what it draws from now on; ``offset_j`` what it had spent before.

    The numbers named ``..._error`` are NVML codes that the call then answers.
    """

    name: str = "NVIDIA Fake"
    uuid: str = "GPU-11111111-aaaa"
    power_w: float = 60.0
    period_s: float = 0.1
    offset_j: float = 5000.0
    instant: bool = True  # whether field 186 is offered
    instant_gain: float = 1.0  # of field 186, against the counter
    usage: bool = False  # whether the plain power call is offered
    architecture: int = 9  # Hopper
    hold_s: float = 0.0  # a read of the counter sooner than this after another one answers the same
    sliced: bool = False
    temperature_c: float | None = 41.0
    clock_mhz: int = 1410
    reasons: int = 0
    pids: tuple[int, ...] = (os.getpid(),)
    open_error: int | None = None
    energy_error: int | None = None
    field_error: int | None = None
    state_error: int | None = None
    frozen_from_s: float = float("inf")
    spans: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])  # (from when, W)
    read_s: float = float("-inf")
    held_mj: int = 0

    def draw(self, clock: "Telling", power_w: float) -> None:
        self.spans.append((clock.now_s(), power_w))
        self.power_w = power_w

    def spent_j(self, until_s: float) -> float:
        ends = [start_s for start_s, _ in self.spans[1:]] + [until_s]
        return sum(
            max(0.0, min(end_s, until_s) - start_s) * power_w
            for (start_s, power_w), end_s in zip(self.spans, ends, strict=True)
        )

    def published_mj(self, now_s: float) -> int:
        published_s = min(now_s, self.frozen_from_s) // self.period_s * self.period_s
        return round((self.offset_j + self.spent_j(published_s)) * 1e3)


class FakeNvmlError(Exception):
    """Like ``pynvml.NVMLError``: the code is in ``value``."""

    def __init__(self, value: int) -> None:
        super().__init__(f"NVML code {value}")
        self.value = value


CODES = {
    "NVML_ERROR_INVALID_ARGUMENT": 2,
    "NVML_ERROR_NOT_SUPPORTED": 3,
    "NVML_ERROR_NO_PERMISSION": 4,
    "NVML_ERROR_NOT_FOUND": 6,
    "NVML_ERROR_DRIVER_NOT_LOADED": 9,
    "NVML_ERROR_LIBRARY_NOT_FOUND": 12,
    "NVML_ERROR_FUNCTION_NOT_FOUND": 13,
    "NVML_ERROR_GPU_IS_LOST": 15,
}
_POWER_INSTANT = 186


class Telling(Protocol):
    """What tells a driver the time: a clock that a test turns, or the machine's."""

    def now_s(self) -> float: ...


@dataclass(slots=True)
class FakeNvml:
    """A driver with boards. ``users`` counts init and shutdown; ``..._error`` is what these answer."""

    clock: Telling
    boards: Sequence[FakeBoard]
    init_error: int | None = None
    shutdown_error: int | None = None
    driver: str = "600.1"
    users: int = 0
    reads: int = 0  # of energy counters

    def __post_init__(self) -> None:
        for board in self.boards:
            board.draw(self.clock, board.power_w)

    def module(self, *without: str) -> Any:
        """The bindings, less the functions named."""
        functions = {
            "nvmlInit": self._init,
            "nvmlShutdown": self._shutdown,
            "nvmlDeviceGetCount": lambda: len(self.boards),
            "nvmlDeviceGetHandleByIndex": self._handle,
            "nvmlDeviceGetName": attrgetter("name"),
            "nvmlDeviceGetUUID": attrgetter("uuid"),
            "nvmlSystemGetDriverVersion": lambda: self.driver,
            "nvmlDeviceGetArchitecture": attrgetter("architecture"),
            "nvmlDeviceGetMigMode": _slicing,
            "nvmlDeviceGetTotalEnergyConsumption": self._energy_mj,
            "nvmlDeviceGetFieldValues": self._fields,
            "nvmlDeviceGetPowerUsage": self._usage_mw,
            "nvmlDeviceGetTemperature": _temperature,
            "nvmlDeviceGetClockInfo": _clock,
            "nvmlDeviceGetCurrentClocksEventReasons": _reasons,
            "nvmlDeviceGetCurrentClocksThrottleReasons": _reasons,
            "nvmlDeviceGetComputeRunningProcesses": _processes,
        }
        offered = {name: function for name, function in functions.items() if name not in without}
        return SimpleNamespace(NVMLError=FakeNvmlError, _nvmlGetFunctionPointer=None, **offered, **CODES)

    def _init(self) -> None:
        if self.init_error is not None:
            raise FakeNvmlError(self.init_error)
        self.users += 1

    def _shutdown(self) -> None:
        _refuse(self.shutdown_error)
        self.users -= 1

    def _handle(self, index: int) -> FakeBoard:
        if not 0 <= index < len(self.boards):
            raise FakeNvmlError(CODES["NVML_ERROR_INVALID_ARGUMENT"])
        _refuse(self.boards[index].open_error)
        return self.boards[index]

    def _energy_mj(self, board: FakeBoard) -> int:
        _refuse(board.energy_error)
        self.reads += 1
        now_s = self.clock.now_s()
        if now_s - board.read_s >= board.hold_s:
            board.held_mj = board.published_mj(now_s)
        board.read_s = now_s
        return board.held_mj

    def _fields(self, board: FakeBoard, field_ids: Sequence[int]) -> list[Any]:
        _refuse(board.field_error)
        power_mw = round(board.power_w * board.instant_gain * 1e3)
        offered = SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=power_mw))
        missing = SimpleNamespace(nvmlReturn=3, value=None)
        return [offered if each == _POWER_INSTANT and board.instant else missing for each in field_ids]

    def _usage_mw(self, board: FakeBoard) -> int:
        if not board.usage:
            raise FakeNvmlError(CODES["NVML_ERROR_NOT_SUPPORTED"])
        return round(board.power_w * 1e3)


def _refuse(code: int | None) -> None:
    if code is not None:
        raise FakeNvmlError(code)


def _slicing(board: FakeBoard) -> list[int]:
    return [int(board.sliced), int(board.sliced)]


def _clock(board: FakeBoard, kind: int) -> int:
    del kind
    _refuse(board.state_error)
    return board.clock_mhz


def _reasons(board: FakeBoard) -> int:
    _refuse(board.state_error)
    return board.reasons


def _temperature(board: FakeBoard, sensor: int) -> int:
    del sensor
    _refuse(board.state_error)
    if board.temperature_c is None:
        raise FakeNvmlError(CODES["NVML_ERROR_NOT_SUPPORTED"])
    return round(board.temperature_c)


def _processes(board: FakeBoard) -> list[Any]:
    _refuse(board.state_error)
    return [SimpleNamespace(pid=pid, usedGpuMemory=1) for pid in board.pids]
