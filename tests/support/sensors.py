"""Sensors that need no hardware: a clock that a test turns, and an NVML whose boards follow it.

``FakeNvml.module()`` has the functions of ``pynvml`` that magneton calls, and its error codes. Boards draw
the power that the test sets, and publish the integral of it every ``period_s``, as real counters do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import SimpleNamespace
from typing import Any


@dataclass(slots=True)
class FakeClock:
    """Monotonic seconds; sleeping is how time passes."""

    now_s: float = 1000.0

    def read_s(self) -> float:
        return self.now_s

    def read_ns(self) -> int:
        return round(self.now_s * 1e9)

    def sleep(self, duration_s: float) -> None:
        self.now_s += duration_s


@dataclass(slots=True)
class FakeBoard:
    """One board. ``power_w`` is what it draws from now on; ``offset_j`` what it had spent before."""

    name: str = "NVIDIA Fake"
    uuid: str = "GPU-11111111-aaaa"
    power_w: float = 60.0
    period_s: float = 0.1
    offset_j: float = 5000.0
    instant: bool = True  # whether field 186 is offered
    energy_error: int | None = None  # the NVML code that reading the counter answers
    spans: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])  # (from when, W)

    def draw(self, clock: FakeClock, power_w: float) -> None:
        self.spans.append((clock.now_s, power_w))
        self.power_w = power_w

    def spent_j(self, until_s: float) -> float:
        ends = [start_s for start_s, _ in self.spans[1:]] + [until_s]
        return sum(
            max(0.0, min(end_s, until_s) - start_s) * power_w
            for (start_s, power_w), end_s in zip(self.spans, ends, strict=True)
        )


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


@dataclass(slots=True)
class FakeNvml:
    """A driver with boards. ``users`` counts init and shutdown; ``init_error`` is what init answers."""

    clock: FakeClock
    boards: Sequence[FakeBoard]
    init_error: int | None = None
    users: int = 0

    def __post_init__(self) -> None:
        for board in self.boards:
            board.draw(self.clock, board.power_w)

    def module(self) -> Any:
        return SimpleNamespace(
            NVMLError=FakeNvmlError,
            nvmlInit=self._init,
            nvmlShutdown=self._shutdown,
            nvmlDeviceGetCount=lambda: len(self.boards),
            nvmlDeviceGetHandleByIndex=self._handle,
            nvmlDeviceGetName=attrgetter("name"),
            nvmlDeviceGetUUID=attrgetter("uuid"),
            nvmlSystemGetDriverVersion=lambda: "600.1",
            nvmlDeviceGetTotalEnergyConsumption=self._energy_mj,
            nvmlDeviceGetFieldValues=self._fields,
            _nvmlGetFunctionPointer=None,
            **CODES,
        )

    def _init(self) -> None:
        if self.init_error is not None:
            raise FakeNvmlError(self.init_error)
        self.users += 1

    def _shutdown(self) -> None:
        self.users -= 1

    def _handle(self, index: int) -> FakeBoard:
        if not 0 <= index < len(self.boards):
            raise FakeNvmlError(CODES["NVML_ERROR_INVALID_ARGUMENT"])
        return self.boards[index]

    def _energy_mj(self, board: FakeBoard) -> int:
        if board.energy_error is not None:
            raise FakeNvmlError(board.energy_error)
        published_s = self.clock.now_s // board.period_s * board.period_s
        return round((board.offset_j + board.spent_j(published_s)) * 1e3)

    def _fields(self, board: FakeBoard, field_ids: Sequence[int]) -> list[Any]:
        if list(field_ids) != [186] or not board.instant:
            return [SimpleNamespace(nvmlReturn=3, value=None)]
        return [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=round(board.power_w * 1e3)))]
