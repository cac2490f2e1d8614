"""Whether a counter lost energy within a window: it stood still, or fell back by less than a step.

A step of less than half of what is usual is looked at. It may be the work itself that paused; then
instantaneous power shows it, unless the pause was short, and then half a step is not missing.
"""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from magneton.meters.edges import Edge
from magneton.meters.windows import settled, slope_w
from magneton.profile.model import PowerSample

_STILL_PERIODS = 2.5  # without a change are no matter of jitter
_LITTLE = 0.5  # of the usual power
_KEPT_UP = 0.75


def loss(
    edges: Sequence[Edge],
    samples: Sequence[PowerSample],
    began_s: float,
    ended_s: float,
    period_s: float,
) -> str:
    """A sentence, or "". A change that is seen late is no loss as long as all the energy is in it."""
    steps = tuple(pairwise(settled(edges, began_s, ended_s)))
    if not steps:
        return ""
    usual_w = median(slope_w(start, stop) for start, stop in steps)
    for start, stop in steps:
        span_s = stop.time_s - start.time_s
        if slope_w(start, stop) >= _LITTLE * usual_w:
            continue
        if span_s > _STILL_PERIODS * period_s:
            return f"the energy counter stood still for {span_s:.2g} s within the window"
        if _kept_up(samples, start.seen_before_s - period_s, stop.seen_s + 2 * period_s):
            step_j, usual_j = stop.energy_j - start.energy_j, usual_w * span_s
            return (
                f"the energy counter lost energy within the window: it went up by {step_j:.3g} J where "
                f"{usual_j:.3g} J are usual, and power stayed up"
            )
    return ""


def _kept_up(samples: Sequence[PowerSample], since_s: float, until_s: float) -> bool:
    """Whether power stayed near what is usual meanwhile; no samples show nothing."""
    near_w = [sample.power_w for sample in samples if since_s <= sample.time_s <= until_s]
    return len(near_w) >= 2 and min(near_w) >= _KEPT_UP * median(sample.power_w for sample in samples)
