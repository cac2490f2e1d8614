"""A counter watched closely for a few changes: how often it advances, and by how much."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from magneton.meters.edges import LONGEST_PERIOD_S, POLL_S, Edge
from magneton.meters.sensors import SensorUnusable


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """Where the counter is read from, how often, and the clock that says when."""

    read_j: Callable[[], float]
    clock_s: Callable[[], float]
    sleep: Callable[[float], None]
    poll_s: float = POLL_S

    def next_edge(self) -> Edge | None:
        """The next change; None if there is none for ``LONGEST_PERIOD_S``."""
        before_s, before_j = self.clock_s(), self.read_j()
        give_up_s = before_s + LONGEST_PERIOD_S
        while before_s < give_up_s:
            self.sleep(self.poll_s)
            asked_s = self.clock_s()
            energy_j = self.read_j()
            if energy_j != before_j:
                return Edge(seen_before_s=before_s, seen_s=self.clock_s(), energy_j=energy_j)
            before_s = asked_s
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """How a counter advances."""

    period_s: float  # between changes, median
    step_j: float  # of one change, median, at the power of the moment


def steps_of(edges: Sequence[Edge], what: str) -> Steps:
    """Median period and step over edges that follow each other."""
    pairs = tuple(pairwise(edges))
    step_j = median(after.energy_j - before.energy_j for before, after in pairs)
    if step_j <= 0:
        raise SensorUnusable(f"{what} runs backwards", hint="reload the driver; or use another meter")
    return Steps(period_s=median(after.time_s - before.time_s for before, after in pairs), step_j=step_j)
