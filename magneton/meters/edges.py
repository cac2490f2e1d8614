"""The moments at which a published counter changes, found with few looks.

A sensor publishes its counter every period T. Whoever looks at any moment sees a figure up to T old;
at the moment at which it changes it is exact. Once the period is known, looks are needed only shortly before
the next change is due:

    edge                                    due    edge
     |             no looks              | | | | | |
                                         <-lead->   <- located within one poll
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

LONGEST_PERIOD_S = 2.0  # a counter that stands still for longer is taken for dead
POLL_S = 1e-3
_LEAD_PERIODS = 0.05
_LEAD_POLLS = 4
_WIDE = 2.5  # polls; an edge known less exactly came before the looks did, or a look came late


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """The counter changed to ``energy_j`` between these two moments.

    ``seen_before_s`` is before the last look that showed the old figure, ``seen_s`` after the first that did
    not.
    """

    seen_before_s: float
    seen_s: float
    energy_j: float

    @property
    def time_s(self) -> float:
        return (self.seen_before_s + self.seen_s) / 2

    @property
    def slack_s(self) -> float:
        """How long the span is in which the edge lies."""
        return self.seen_s - self.seen_before_s


class Edges(Protocol):
    """What collects edges, look by look. ``fault`` says why they must not be used, if so."""

    @property
    def seen(self) -> list[Edge]: ...

    @property
    def fault(self) -> str: ...

    def look(self) -> float:
        """Returns after how many seconds to look next."""
        ...


class _Rhythm:
    """When to look for the next edge: not long before it is due, the sooner the later the last was found."""

    def __init__(self, period_s: float, poll_s: float) -> None:
        self.period_s = period_s
        self.poll_s = poll_s
        self._least_lead_s = min(max(_LEAD_POLLS * poll_s, _LEAD_PERIODS * period_s), period_s / 2)
        self._lead_s = self._least_lead_s

    def after(self, edge: Edge) -> float:
        """Seconds from an edge to the next look."""
        if edge.slack_s > _WIDE * self.poll_s:
            self._lead_s = min(2 * self._lead_s, self.period_s / 2)
        else:
            self._lead_s = max(0.9 * self._lead_s, self._least_lead_s)
        return max(self.poll_s, self.period_s - self._lead_s)


class CounterEdges:
    """Edges of a counter that looks do not disturb."""

    def __init__(
        self,
        read_j: Callable[[], float],
        now_s: Callable[[], float],
        *,
        period_s: float,
        poll_s: float = POLL_S,
    ) -> None:
        self.seen: list[Edge] = []
        self.fault = ""
        self._read_j = read_j
        self._now_s = now_s
        self._rhythm = _Rhythm(period_s, poll_s)
        self._asked: tuple[float, float] | None = None  # when, what
        self._changed_s = 0.0

    def look(self) -> float:
        asked_s = self._now_s()
        energy_j = self._read_j()
        seen_s = self._now_s()  # the call may have waited: for the driver, or for its turn to run
        before, self._asked = self._asked, (asked_s, energy_j)
        if before is None:
            self._changed_s = asked_s
            return self._rhythm.poll_s
        before_s, before_j = before
        if energy_j > before_j:
            edge = Edge(seen_before_s=before_s, seen_s=seen_s, energy_j=energy_j)
            self.seen.append(edge)
            self._changed_s = seen_s
            return self._rhythm.after(edge)
        if energy_j < before_j and not self.fault:
            self.fault = f"the energy counter ran backwards by {before_j - energy_j:.3g} J: it was reset"
        elif asked_s - self._changed_s > LONGEST_PERIOD_S and not self.fault:
            self.fault = f"the energy counter stood still for {LONGEST_PERIOD_S:g} s"
        return self._rhythm.poll_s


class PowerEdges:
    """Edges of a counter of our own, for boards whose counter must not be read often.

    Each newly published power is taken for the whole time since the one before. Two that are equal cannot be
    told apart: where no change comes, one is taken to have come when it was due.
    """

    def __init__(
        self, read_w: Callable[[], float | None], now_s: Callable[[], float], *, period_s: float
    ) -> None:
        self.seen: list[Edge] = []
        self.fault = ""
        self._read_w = read_w
        self._now_s = now_s
        self._rhythm = _Rhythm(period_s, POLL_S)
        self._asked: tuple[float, float] | None = None  # when, what
        self._edge_s = 0.0
        self._spent_j = 0.0

    def look(self) -> float:
        asked_s = self._now_s()
        power_w = self._read_w()
        seen_s = self._now_s()
        if power_w is None:
            self.fault = self.fault or "the power sensor gave no figure"
            return self._rhythm.period_s
        before, self._asked = self._asked, (asked_s, power_w)
        if before is None:
            self._edge_s = asked_s
            return self._rhythm.poll_s
        before_s, before_w = before
        if power_w != before_w:
            return self._edge(before_s, seen_s, power_w)
        due_s = self._edge_s + self._rhythm.period_s
        if asked_s > due_s + _LEAD_POLLS * self._rhythm.poll_s:
            return self._edge(due_s, due_s, power_w) - (asked_s - due_s)
        return self._rhythm.poll_s

    def _edge(self, before_s: float, seen_s: float, power_w: float) -> float:
        self._spent_j += power_w * ((before_s + seen_s) / 2 - self._edge_s)
        edge = Edge(seen_before_s=before_s, seen_s=seen_s, energy_j=self._spent_j)
        self._edge_s = edge.time_s
        self.seen.append(edge)
        return self._rhythm.after(edge)
