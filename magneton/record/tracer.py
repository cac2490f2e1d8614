"""What a framework's tracer promises. ``magneton.record.torch`` is the one for PyTorch."""

from typing import Protocol

from magneton.profile.model import BlockReading
from magneton.record.journal import Journal
from magneton.record.request import Filled
from magneton.record.windows import Windows
from magneton.systems.running import RunningSystem
from magneton.workload import Phase


class Tracer(Protocol):
    """Passes 2-4 of a recording. Each call runs whole steps of ``phase`` and appends rows to ``journal``."""

    def trace(self, system: RunningSystem, phase: Phase, journal: Journal) -> None:
        """The dataflow pass: one step; operators, values, sketches, stacks, keys, declared outputs.

        Called once per phase, in the order of the phases; ids go on counting over phases, and values
        that live across phases (parameters) keep their id.
        """
        ...

    def timeline(
        self, system: RunningSystem, phase: Phase, steps: int, round: int, windows: Windows, journal: Journal
    ) -> BlockReading:
        """One block of ``steps`` steps under the framework's profiler: spans mapped onto traced operators."""
        ...

    def replay(
        self,
        system: RunningSystem,
        phase: Phase,
        round: int,
        windows: Windows,
        journal: Journal,
        budget_s: float,
        cache: Filled = "warm",
    ) -> None:
        """One reading of every replayable key that occurs in one step of ``phase``.

        ``cache``: in which state an operator that is repeated is to find the caches.
        """
        ...
