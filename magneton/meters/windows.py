"""Energy of a window from the edges of a published counter. Pure: edges and times in, joules out.

A counter is up to a period T old when it is published, by a lag that nobody tells. Between two edges it is
exact all the same, because the lag is the same at both. Two ways to use that:

*Steady*: the window is many equal pieces, so power in its middle is power throughout.

       begin                                                       end
    -----|####################################################|-----
             |      |        edges        |      |
             settles  <---- slope x duration ---->

*Flanked*: few pieces, or one of which nothing is known. Everything is counted from an edge at rest before
the work to an edge at rest after it, and what was drawn at rest is taken off, at the power of either side.

        idle  idle  start                        late   stop  idle
    ------|-----|-----|---|#######################|-|-----|-----|---
                        begin                    end
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import hypot, sqrt
from statistics import fmean

from magneton.meters.edges import POLL_S, Edge

SETTLE_S = 0.25  # clocks and voltages have followed the load
IDLE_EDGES = 3  # that a flanked window needs at rest, on either side: a late one, and two for a slope
_LATE_EDGES = 1  # after a moment, that may tell of the time before it
_ENDS = 24  # edges at either end of a window among which pairs are chosen
_RIPPLE = 0.5  # how far power within a piece is taken to swing, over its mean
_AS_GOOD = 1.25  # pairs whose error is within this of the best one's are averaged
_REST = 3.0  # an edge at rest is the end of a slope, which holds for up to two periods, and of a time
_UNIFORM = 1 / sqrt(12)  # deviation of what may be anywhere within 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Energy of one window; ``error`` is relative, one deviation, as far as it shows in the edges."""

    energy_j: float
    error: float


def steady_energy(edges: Sequence[Edge], began_s: float, ended_s: float, pieces: int) -> Estimate | None:
    """Slope between edges in the middle of the window, times its duration.

    Spans near a whole number of pieces are taken, and several of them, so that it does not matter where in a
    piece an edge falls. None where the edges do not span a third of the window.
    """
    duration_s = ended_s - began_s
    inside = settled(edges, began_s, ended_s)
    if len(inside) < 2 or inside[-1].time_s - inside[0].time_s < duration_s / 3:
        return None
    spans = _spans(inside, duration_s / pieces)
    best = min(error for _, error in spans)
    chosen = [span for span in spans if span[1] <= _AS_GOOD * best]
    power_w = fmean(power_w for power_w, _ in chosen)
    if power_w <= 0:
        return None
    return Estimate(energy_j=power_w * duration_s, error=best)


def _spans(inside: Sequence[Edge], piece_s: float) -> list[tuple[float, float]]:
    """Power and its relative error over pairs of edges that are at least half as far apart as any."""
    longest_s = inside[-1].time_s - inside[0].time_s
    spans: list[tuple[float, float]] = []
    for start, stop in product(inside[:_ENDS], inside[-_ENDS:]):
        span_s = stop.time_s - start.time_s
        if 2 * span_s < longest_s:
            continue
        beside_s = abs(span_s - round(span_s / piece_s) * piece_s)
        located_s = _UNIFORM * hypot(start.slack_s, stop.slack_s, POLL_S)
        error = hypot(located_s, _RIPPLE * min(beside_s, piece_s / 4)) / span_s
        spans.append(((stop.energy_j - start.energy_j) / span_s, error))
    return spans


def flanked_energy(edges: Sequence[Edge], began_s: float, ended_s: float, period_s: float) -> Estimate | None:
    """All that was counted from rest to rest, less what rest draws. None where an edge is missing."""
    delay_s = period_s / 2  # anything up to a period
    before = [edge for edge in edges if edge.seen_s <= began_s]
    after = [edge for edge in edges if edge.seen_s > ended_s]
    if len(before) < IDLE_EDGES or len(after) < IDLE_EDGES:
        return None
    start, stop = before[-1], after[_LATE_EDGES]
    idle_before_w, idle_after_w = slope_w(before[-2], start), slope_w(stop, after[_LATE_EDGES + 1])
    rest_j = idle_before_w * (began_s - start.time_s + delay_s)
    rest_j += idle_after_w * (stop.time_s - delay_s - ended_s)
    energy_j = stop.energy_j - start.energy_j - rest_j
    if min(idle_before_w, idle_after_w) < 0 or energy_j <= 0:
        return None
    located_j = _REST * _UNIFORM * hypot(start.slack_s, stop.slack_s) * max(idle_before_w, idle_after_w)
    unknown_delay_j = delay_s * _UNIFORM * 2 * abs(idle_after_w - idle_before_w)
    return Estimate(energy_j=energy_j, error=hypot(located_j, unknown_delay_j) / energy_j)


def settled(edges: Sequence[Edge], began_s: float, ended_s: float) -> Sequence[Edge]:
    """The edges of a window that tell of nothing but its work, and of that once it runs evenly."""
    inside = [edge for edge in edges if began_s < edge.seen_before_s and edge.seen_s <= ended_s]
    settled_s = began_s + min(SETTLE_S, (ended_s - began_s) / 4)
    return [edge for edge in inside[_LATE_EDGES:] if edge.seen_before_s >= settled_s]


def slope_w(start: Edge, stop: Edge) -> float:
    """Mean power between two edges."""
    return (stop.energy_j - start.energy_j) / max(stop.time_s - start.time_s, 1e-9)
