"""Fakes for the passes over PyTorch: a system made of one function, and meters on clocks of our own."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

from magneton.meters.clock import Watch
from magneton.meters.meter import Reading
from magneton.profile.model import PowerSample
from magneton.profile.origin import MeterInfo
from magneton.quantity import Provenance
from magneton.systems.running import Facts, Setup
from magneton.workload import CALL, Phase


class FakeClock:
    """Stands still until somebody spends time. Sleeping is spending; a watch looks once."""

    def __init__(self) -> None:
        self._now_s = 0.0
        self.slept_s: list[float] = []

    def __call__(self) -> float:
        return self._now_s

    def now_s(self) -> float:
        return self._now_s

    def spend(self, seconds: float) -> None:
        self._now_s += seconds

    def sleep(self, duration_s: float) -> None:
        self.slept_s.append(duration_s)
        self.spend(duration_s)

    def watch(self, look: Callable[[], float]) -> Watch:
        look()
        return Stopped()


class Stopped:
    """A watch that is over."""

    def stop(self) -> None:
        """Nothing is under way."""


class ClockMeter:
    """Power times the time that ``clock_s`` shows; reading the clock may itself cost time."""

    def __init__(
        self,
        clock_s: Callable[[], float] = time.process_time,
        *,
        power_w: float = 5.0,
        shortest_window_s: float = 0.0,
        reads: bool = True,
    ) -> None:
        self.shortest_window_s = shortest_window_s
        self.windows: list[Reading] = []
        self._clock_s = clock_s
        self._power_w = power_w
        self._reads = reads
        self._began_s: float | None = None

    def info(self) -> MeterInfo:
        return MeterInfo(name="fake", unit="J", provenance=Provenance.MODELLED)

    def begin(self, pieces: int = 1) -> None:
        del pieces
        assert self._began_s is None, "windows do not nest"
        self._began_s = self._clock_s()

    def end(self) -> Reading:
        assert self._began_s is not None, "end without begin"
        duration_s = self._clock_s() - self._began_s
        self._began_s = None
        energy_j = duration_s * self._power_w if self._reads else None
        self.windows.append(Reading(duration_s=duration_s, energy_j=energy_j))
        return self.windows[-1]

    def samples(self) -> tuple[PowerSample, ...]:
        return ()

    def close(self) -> None:
        """Nothing is held."""


class FunctionSystem:
    """A system whose step is one call of ``work``; ``before`` is its rewind."""

    framework: Literal["torch"] = "torch"

    def __init__(
        self,
        work: Callable[[], Mapping[str, Any]],
        *,
        before: Callable[[], object] = lambda: None,
        roots: Mapping[str, Any] | None = None,
    ) -> None:
        self.calls: list[str] = []
        self._work = work
        self._before = before
        self._roots = roots or {}

    def load(self, setup: Setup) -> Facts:
        return Facts(versions={}, grad_mode="inference", mode="eager", dataflow_mode="eager", flags={})

    def phases(self) -> tuple[Phase, ...]:
        return (CALL,)

    def rewind(self, phase: Phase) -> None:
        self.calls.append("rewind")
        self._before()

    def step(self, phase: Phase) -> Mapping[str, Any]:
        self.calls.append("step")
        return self._work()

    def uncompiled(self) -> AbstractContextManager[object]:
        return nullcontext()

    def roots(self) -> Mapping[str, Any]:
        return self._roots
