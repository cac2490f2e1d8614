"""A published energy counter, read edge to edge.

A sensor publishes its counter every period T (about 100 ms on data-centre boards). Read at any moment
it is up to T old, which biases a window by T x power at either end; read at the moments at which it
changes it is exact. A window therefore begins at an edge, and ends at the first edge after the work:

    edge         edge         edge                   edge          edge
     |---idle-----|###########|######## ... ########|####.........|
     first       start      work runs                  work end    stop
                  <------------ duration_s --------------><-tail->

The tail was idle, at the power seen between the two edges before the work.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from magneton.meters.sensors import SensorUnusable

POLL_S = 1e-3
LONGEST_PERIOD_S = 2.0  # a counter that stands still for longer is taken for dead
PROBE_EDGES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """The counter changed to ``energy_j`` within one poll before ``time_s``."""

    time_s: float
    energy_j: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """Where the counter is read from, and the clock that says when."""

    read_j: Callable[[], float]
    clock_s: Callable[[], float]
    sleep: Callable[[float], None]

    def next_edge(self) -> Edge | None:
        """The next change; None if there is none for ``LONGEST_PERIOD_S``."""
        before_j = self.read_j()
        give_up_s = self.clock_s() + LONGEST_PERIOD_S
        while True:
            self.sleep(POLL_S)
            energy_j, now_s = self.read_j(), self.clock_s()
            if energy_j != before_j:
                return Edge(time_s=now_s, energy_j=energy_j)
            if now_s > give_up_s:
                return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterProbe:
    """What the counter does on this board, now."""

    period_s: float  # between changes, median
    step_j: float  # of one change, median, at the power of the moment


def probe_counter(counter: Counter, what: str) -> CounterProbe:
    """Watch a few changes. A counter that stands still or runs backwards is an error."""
    edges = [counter.next_edge() for _ in range(PROBE_EDGES)]
    seen = [edge for edge in edges if edge is not None]
    if len(seen) < PROBE_EDGES:
        raise SensorUnusable(
            f"{what} did not change within {LONGEST_PERIOD_S:g} s",
            hint="see whether nvidia-smi shows a changing power draw; or use --meter counted:bytes",
        )
    pairs = tuple(pairwise(seen))
    step_j = median(after.energy_j - before.energy_j for before, after in pairs)
    if step_j <= 0:
        raise SensorUnusable(f"{what} runs backwards", hint="reload the driver; or use another meter")
    return CounterProbe(
        period_s=median(after.time_s - before.time_s for before, after in pairs), step_j=step_j
    )


def window_energy_j(first: Edge, start: Edge, work_end_s: float, stop: Edge) -> float | None:
    """Energy from ``start`` to the end of the work; None if the counter was reset on the way."""
    idle_w = (start.energy_j - first.energy_j) / (start.time_s - first.time_s)
    energy_j = stop.energy_j - start.energy_j - idle_w * (stop.time_s - work_end_s)
    return energy_j if idle_w >= 0 and energy_j > 0 else None
