"""Counters as boards publish them, in closed form: what looks find, of work whose energy is known.

power   idle | piece piece piece ... | idle          a piece: some time at high power, the rest at low
ticks     |      |      |      |      |              every period, each seen one lag later
"""

from dataclasses import dataclass
from math import ceil, floor
from typing import Literal

from magneton.meters.edges import Edge

POLL_S = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Idle, then ``pieces`` equal repetitions from ``began_s`` to ``ended_s``, then idle again.

    A piece draws ``high_w`` for the first ``share`` of it and ``low_w`` for the rest.
    """

    began_s: float
    ended_s: float
    pieces: int
    high_w: float
    low_w: float
    share: float
    idle_w: float = 60.0
    idle_after_w: float = 60.0

    @property
    def energy_j(self) -> float:
        """Of the work alone."""
        return (self.ended_s - self.began_s) * (self.share * self.high_w + (1 - self.share) * self.low_w)

    @property
    def piece_s(self) -> float:
        return (self.ended_s - self.began_s) / self.pieces

    def spent_j(self, at_s: float) -> float:
        """Since time 0."""
        busy_s = min(max(at_s - self.began_s, 0.0), self.ended_s - self.began_s)
        whole, part_s = divmod(busy_s, self.piece_s)
        high_s = whole * self.share * self.piece_s + min(part_s, self.share * self.piece_s)
        idle_j = self.idle_w * min(at_s, self.began_s) + self.idle_after_w * max(at_s - self.ended_s, 0.0)
        return idle_j + high_s * self.high_w + (busy_s - high_s) * self.low_w


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensor:
    """Publishes every ``period_s``, some ``lag_s`` later; "sampled" looks at the end of each only."""

    period_s: float
    phase_s: float
    lag_s: float
    kind: Literal["integral", "sampled"] = "integral"
    boxcar: float = 0.25  # part of a period that a sampling sensor looks at

    def edges(self, load: Load, since_s: float, until_s: float) -> list[Edge]:
        """Those that are seen between two times, each found at one of the polls."""
        first = ceil((since_s - self.lag_s - self.phase_s) / self.period_s)
        last = floor((until_s - self.lag_s - self.phase_s) / self.period_s)
        energy_j = self._tick_j(load, first - 1)
        edges: list[Edge] = []
        for tick in range(first, last + 1):
            energy_j = (
                self._tick_j(load, tick) if self.kind == "integral" else energy_j + self._step_j(load, tick)
            )
            seen_s = ceil((self._tick_s(tick) + self.lag_s) / POLL_S) * POLL_S
            edges.append(Edge(seen_before_s=seen_s - POLL_S, seen_s=seen_s, energy_j=energy_j))
        return edges

    def _tick_s(self, tick: int) -> float:
        return tick * self.period_s + self.phase_s

    def _tick_j(self, load: Load, tick: int) -> float:
        return load.spent_j(self._tick_s(tick))

    def _step_j(self, load: Load, tick: int) -> float:
        looked_s = self.boxcar * self.period_s
        until_s = self._tick_s(tick)
        return (load.spent_j(until_s) - load.spent_j(until_s - looked_s)) / looked_s * self.period_s
