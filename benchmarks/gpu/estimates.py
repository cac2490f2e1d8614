"""Ratios with intervals without scipy: magneton's own centre and error, and Student's t from a table."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from magneton.statistics import estimate_ratio

# 97.5 % quantiles of Student's t for 1, 2, ... degrees of freedom.
T_QUANTILES = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A ratio with its 95 % interval. A single pair has none: both bounds are None."""

    ratio: float
    low: float | None
    high: float | None
    n: int

    @property
    def clear_of_one(self) -> bool:
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high


def ratio_of_pairs(over: Sequence[float], under: Sequence[float]) -> Interval | None:
    """Of readings that were made in turns. None where there is no pair, or a reading is not positive."""
    if not over or not under:
        return None
    found = estimate_ratio(under, over, paired=True)
    if found is None:
        return None
    ratio = math.exp(found.log_ratio)
    if found.degrees_of_freedom == 0:
        return Interval(ratio=ratio, low=None, high=None, n=found.n)
    half = found.standard_error * t_quantile(found.degrees_of_freedom)
    return Interval(ratio=ratio, low=ratio * math.exp(-half), high=ratio * math.exp(half), n=found.n)


def ratio_to_known(readings: Sequence[float], known: float) -> Interval | None:
    """Of readings to a figure that is taken for exact."""
    return ratio_of_pairs(readings, [known] * len(readings))


def t_quantile(freedom: float) -> float:
    """Between and beyond the table's entries the next smaller one, which is wider."""
    return T_QUANTILES[min(len(T_QUANTILES), max(1, int(freedom))) - 1]
