"""Simulated NVIDIA boards with known truth, and the virtual time that they, the work and the meters share.

Only in a process that was started with the library in its environment: see ``environment`` and
``in_simulation``. There ``pynvml`` and Zeus find it as they would find the driver's.

    simulation = Simulation([Board(shape=A100, gain=1.03)], seed=7)
    meter = NvmlMeter(board, clock=simulation, ...)
    simulation.run(0, Work(busy_w=266, busy_s=5e-3), times=1000)
    simulation.true_energy_j(0)
"""

import math
from collections.abc import Callable, Iterable, Sequence
from ctypes import CDLL, c_char_p, c_double, c_int
from dataclasses import dataclass
from typing import Any

from simulated_faults import (
    EVERYTHING,
    AmbientShift,
    CallFails,
    Code,
    CounterFrozen,
    CounterReset,
    CounterRollback,
    Fault,
    ForeignProcess,
    Reason,
    Throttled,
    driver_missing,
    gpu_lost,
)
from simulated_library import SONAME, build_library, compiler, environment
from simulated_scenarios import Host, in_simulation
from simulated_shapes import A100, H100, RTX_4090, SHAPES, V100, Board, BoardShape, settings_text

from magneton.meters.clock import SystemClock, Watch

__all__ = [
    "A100",
    "EVERYTHING",
    "H100",
    "RTX_4090",
    "SHAPES",
    "V100",
    "AmbientShift",
    "Board",
    "BoardShape",
    "CallFails",
    "Code",
    "CounterFrozen",
    "CounterReset",
    "CounterRollback",
    "Fault",
    "ForeignProcess",
    "Host",
    "Reason",
    "Simulation",
    "SimulationError",
    "Throttled",
    "Work",
    "build_library",
    "compiler",
    "driver_missing",
    "environment",
    "gpu_lost",
    "in_simulation",
]

CALL_S = 1e-5  # what one NVML call costs in virtual time


class SimulationError(Exception):
    """The simulation was asked for what cannot be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a board draws while it does one thing, and between that and the next time."""

    busy_w: float
    busy_s: float
    gap_s: float = 0.0
    gap_w: float | None = None  # None: idle


class Simulation:
    """The boards of this process, and their clock (a ``magneton.meters.clock.Clock``).

    In virtual time nothing passes by itself: ``sleep``, ``run`` and each NVML call let it pass, and looks are
    called as it does. In real time the clock is the machine's, and looks come from a thread.
    """

    def __init__(
        self,
        boards: Sequence[Board],
        *,
        faults: Iterable[Fault] = (),
        seed: int = 0,
        real_time: bool = False,
        call_s: float = CALL_S,
    ) -> None:
        self._library = _loaded()
        text = settings_text(boards, real_time=real_time, seed=seed, call_s=call_s)
        lines = [text, *(fault.text() for fault in faults)]
        self._check(self._library.sim_configure("\n".join(lines).encode()))
        self._real_time = real_time
        self._watches: list[_VirtualWatch] = []

    @classmethod
    def joined(cls) -> "Simulation":
        """The boards that the environment of this process names, as they are now."""
        simulation = cls.__new__(cls)
        simulation._library = _loaded()
        simulation._real_time = simulation._library.sim_is_real_time() == 1
        simulation._watches = []
        return simulation

    def now_s(self) -> float:
        return self._library.sim_now_s()

    def sleep(self, duration_s: float) -> None:
        until_s = self.now_s() + duration_s
        self._pass(lambda: until_s)

    def watch(self, look: Callable[[], float]) -> Watch:
        if self._real_time:
            return SystemClock().watch(look)
        watch = _VirtualWatch(look=look, watches=self._watches, clock_s=self._library.sim_now_s)
        watch.call()
        self._watches.append(watch)
        return watch

    def launch(self, board: int, work: Work, times: int = 1) -> None:
        """Gives the board work to do after what it has; time does not pass."""
        gap_w = math.nan if work.gap_w is None else work.gap_w
        self._check(self._library.sim_launch(board, work.busy_w, work.busy_s, gap_w, work.gap_s, times))

    def synchronize(self, board: int) -> None:
        """Until the board has done all that it was given."""
        self._pass(lambda: self._figure(self._library.sim_work_end_s(board)))

    def run(self, board: int, work: Work, times: int = 1) -> None:
        self.launch(board, work, times)
        self.synchronize(board)

    def true_energy_j(self, board: int, at_s: float | None = None) -> float:
        """Since the start, until now or until a moment that is not long past (two seconds are fine)."""
        return self._figure(self._library.sim_true_energy_j(board, math.nan if at_s is None else at_s))

    def true_power_w(self, board: int, at_s: float | None = None) -> float:
        return self._figure(self._library.sim_true_power_w(board, math.nan if at_s is None else at_s))

    def true_temperature_c(self, board: int, at_s: float | None = None) -> float:
        return self._figure(self._library.sim_true_temperature_c(board, math.nan if at_s is None else at_s))

    def calls(self, board: int | None = None) -> int:
        """NVML calls so far, about one board or in all."""
        return int(self._figure(self._library.sim_calls(-1 if board is None else board)))

    def set_context(self, board: int, *, open: bool) -> None:
        """A context keeps the board in P0; without one it idles as deep as it can."""
        self._check(self._library.sim_set_context(board, open))

    def fault(self, *faults: Fault) -> None:
        for each in faults:
            self._check(self._library.sim_fault(each.text().encode()))

    def clear_faults(self) -> None:
        self._library.sim_clear_faults()

    def _pass(self, target_s: Callable[[], float]) -> None:
        """Until the target, which looks may move on their way."""
        library = self._library
        while True:
            until_s = target_s()
            due = min(self._due(), key=_VirtualWatch.when_s, default=None)
            if due is None or due.due_s > until_s:
                library.sim_pass_until(until_s)
                if not self._real_time or library.sim_now_s() >= until_s:
                    return
                continue
            library.sim_pass_until(due.due_s)
            due.call()

    def _due(self) -> "list[_VirtualWatch]":
        return [watch for watch in self._watches if not watch.looking]

    def _figure(self, value: float) -> float:
        if math.isnan(value):
            self._check(-1)
        return value

    def _check(self, result: int) -> None:
        if result != 0:
            raise SimulationError(self._library.sim_complaint().decode())


@dataclass(slots=True, kw_only=True, eq=False)
class _VirtualWatch:
    """A look and when it is due. While it looks, time that passes does not call it again."""

    look: Callable[[], float]
    watches: "list[_VirtualWatch]"
    clock_s: Callable[[], float]
    due_s: float = 0.0
    looking: bool = False
    problem: BaseException | None = None

    def when_s(self) -> float:
        return self.due_s

    def call(self) -> None:
        self.looking = True
        try:
            self.due_s = self.look() + self.clock_s()
        except BaseException as problem:  # noqa: BLE001 - handed on to whoever stops the watch
            self.problem = problem
            self.due_s = math.inf
        finally:
            self.looking = False

    def stop(self) -> None:
        if self in self.watches:
            self.watches.remove(self)
        if self.problem is not None:
            raise self.problem


def _loaded() -> Any:
    """The library that pynvml has or will have: the loader knows it by its name."""
    library = CDLL(SONAME)
    if not hasattr(library, "sim_configure"):
        raise SimulationError("this process has another NVML than the simulated one")
    for name in ("sim_configure", "sim_fault"):
        getattr(library, name).argtypes = [c_char_p]
    library.sim_complaint.restype = c_char_p
    library.sim_launch.argtypes = [c_int, c_double, c_double, c_double, c_double, c_double]
    library.sim_set_context.argtypes = [c_int, c_int]
    library.sim_pass_until.argtypes = [c_double]
    library.sim_pass_until.restype = None
    library.sim_clear_faults.restype = None
    for name in ("sim_true_energy_j", "sim_true_power_w", "sim_true_temperature_c"):
        getattr(library, name).argtypes = [c_int, c_double]
        getattr(library, name).restype = c_double
    for name in ("sim_work_end_s", "sim_calls"):
        getattr(library, name).argtypes = [c_int]
        getattr(library, name).restype = c_double
    library.sim_now_s.restype = c_double
    return library
