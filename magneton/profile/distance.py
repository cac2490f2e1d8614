"""How far two sketched values are apart.

The distance is the largest difference of the mean characteristic function over the frequencies that
both sketches hold, or the relative difference of their rms, whichever is larger. Values with other
counts of elements, infinities, NaN or huge numbers are infinitely far apart.
"""

import numpy as np
from numpy.typing import NDArray

from magneton.profile.sketches import FREQUENCIES, Sketches

FEWEST_SHARED = 5  # frequencies; fewer say too little

Rows = NDArray[np.int64]
Reals = NDArray[np.float64]


def ordinary(sketches: Sketches, rows: Rows) -> NDArray[np.int64]:
    """How many elements entered the sums of each row."""
    apart = sketches.pos_inf[rows] + sketches.neg_inf[rows] + sketches.nan[rows] + sketches.huge[rows]
    return sketches.count[rows] - apart


def kind_keys(sketches: Sketches, rows: Rows) -> NDArray[np.int64]:
    """[R, 5] what must agree exactly before a distance means anything."""
    columns = (sketches.count, sketches.pos_inf, sketches.neg_inf, sketches.nan, sketches.huge)
    return np.stack([column[rows] for column in columns], axis=1)


def mean_features(sketches: Sketches, rows: Rows) -> tuple[Reals, Reals]:
    """The mean of cos and of sin at each row's own frequencies, [R, 9] each."""
    scale = 1.0 / np.maximum(ordinary(sketches, rows), 1).astype(np.float64)[:, None]
    return sketches.cos_sum[rows] * scale, sketches.sin_sum[rows] * scale


def distances(sketches_x: Sketches, rows_x: Rows, sketches_y: Sketches, rows_y: Rows) -> Reals:
    """The distance of each ``rows_x[k]`` from ``rows_y[k]``; infinite where they cannot be compared."""
    result = np.full(len(rows_x), np.inf)
    if not len(rows_x):
        return result
    same = np.all(kind_keys(sketches_x, rows_x) == kind_keys(sketches_y, rows_y), axis=1)
    comparable = same & sketches_x.known[rows_x] & sketches_y.known[rows_y]
    shift = sketches_y.first[rows_y].astype(np.int64) - sketches_x.first[rows_x]
    comparable &= np.abs(shift) <= FREQUENCIES - FEWEST_SHARED
    cos_x, sin_x = mean_features(sketches_x, rows_x)
    cos_y, sin_y = mean_features(sketches_y, rows_y)
    for by in np.unique(shift[comparable]):
        at = np.flatnonzero(comparable & (shift == by))
        in_x = slice(max(by, 0), FREQUENCIES + min(by, 0))
        in_y = slice(max(-by, 0), FREQUENCIES + min(-by, 0))
        apart = np.hypot(cos_x[at, in_x] - cos_y[at, in_y], sin_x[at, in_x] - sin_y[at, in_y])
        result[at] = np.max(apart, axis=1)
    rms_x, rms_y = sketches_x.rms[rows_x], sketches_y.rms[rows_y]
    relative = np.abs(rms_x - rms_y) / np.maximum(np.maximum(rms_x, rms_y), np.finfo(np.float64).tiny)
    return np.maximum(result, relative)


def distance(sketches_x: Sketches, i: int, sketches_y: Sketches, j: int) -> float:
    """The distance of value ``i`` of one profile from value ``j`` of another."""
    return float(distances(sketches_x, np.array([i]), sketches_y, np.array([j]))[0])
