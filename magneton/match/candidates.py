"""Which values of two sides are close enough to be equal, without comparing all with all.

Values are bucketed by what must agree exactly (count, non-finite counts) and by the octave of their rms;
within a bucket a k-d tree over the mean features gives the neighbours. Tests per value stay constant as
layers are added, even though the activations of one model often share one count and one rms.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from magneton.match.distance import threshold
from magneton.profile.distance import Reals, Rows, distances, kind_keys, mean_features
from magneton.profile.sketches import FREQUENCIES, Sketches

OCTAVE = 2  # steps of the half-octave grid between neighbouring windows of frequencies
SMALL = 64  # up to so many pairs are compared outright

Bucket = tuple[int, ...]


def close_pairs(
    sketches_x: Sketches,
    rows_x: Rows,
    sketches_y: Sketches,
    rows_y: Rows,
    limit: Callable[[NDArray[np.int64]], Reals] = threshold,
    *,
    most: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], Reals]:
    """Positions in ``rows_x`` and ``rows_y`` no farther apart than ``limit`` of their count, and how far.

    ``most`` bounds the neighbours of each of ``rows_x`` that are tried, the nearest first.
    """
    buckets_x, buckets_y = _buckets(sketches_x, rows_x), _buckets(sketches_y, rows_y)
    tried = [
        pair
        for (*kind, first), at_x in buckets_x.items()
        for shift in (-OCTAVE, 0, OCTAVE)
        if (at_y := buckets_y.get((*kind, first + shift))) is not None
        for pair in _neighbours(sketches_x, rows_x, at_x, sketches_y, rows_y, at_y, shift, limit, most)
    ]
    at_x = np.concatenate([np.empty(0, dtype=np.int64), *(x for x, _ in tried)])
    at_y = np.concatenate([np.empty(0, dtype=np.int64), *(y for _, y in tried)])
    apart = distances(sketches_x, rows_x[at_x], sketches_y, rows_y[at_y])
    near = apart <= limit(sketches_x.count[rows_x[at_x]])
    return at_x[near], at_y[near], apart[near]


def _buckets(sketches: Sketches, rows: Rows) -> Mapping[Bucket, NDArray[np.int64]]:
    if not len(rows):
        return {}
    keys = np.column_stack([kind_keys(sketches, rows), sketches.first[rows]])
    order = np.lexsort(keys.T)
    starts = np.flatnonzero(np.any(np.diff(keys[order], axis=0, prepend=-1) != 0, axis=1))
    starts = np.union1d(starts, [0])
    return {tuple(map(int, keys[part[0]])): part for part in np.split(order, starts[1:])}


def _neighbours(
    sketches_x: Sketches,
    rows_x: Rows,
    at_x: NDArray[np.int64],
    sketches_y: Sketches,
    rows_y: Rows,
    at_y: NDArray[np.int64],
    shift: int,
    limit: Callable[[NDArray[np.int64]], Reals],
    most: int | None,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """A superset of the close pairs of two buckets whose windows of frequencies lie ``shift`` apart."""
    if len(at_x) * len(at_y) <= SMALL:
        yield np.repeat(at_x, len(at_y)), np.tile(at_y, len(at_x))
        return
    points_x = _points(sketches_x, rows_x[at_x], shift)
    points_y = _points(sketches_y, rows_y[at_y], -shift)
    reach = float(limit(sketches_x.count[rows_x[at_x[:1]]])[0])
    tree = KDTree(points_y)
    if most is not None:
        _, hits = tree.query(points_x, k=most, distance_upper_bound=reach, p=np.inf)
        hits = np.asarray(hits).reshape(len(at_x), most)  # the number of points where there are fewer
        rows, ranks = np.nonzero(hits < len(at_y))
        yield at_x[rows], at_y[hits[rows, ranks]]
        return
    found = tree.query_ball_point(points_x, reach, p=np.inf)
    sizes = [len(hits) for hits in found]
    if sum(sizes):
        yield np.repeat(at_x, sizes), at_y[np.concatenate([h for h in found if h]).astype(np.int64)]


def _points(sketches: Sketches, rows: Rows, shift: int) -> Reals:
    """Mean features at the frequencies shared with a window ``shift`` steps higher, and the log of rms."""
    shared = slice(max(shift, 0), FREQUENCIES + min(shift, 0))
    cos, sin = mean_features(sketches, rows)
    log_rms = np.log(np.maximum(sketches.rms[rows], np.finfo(np.float64).tiny)) / 1.01
    return np.column_stack([cos[:, shared], sin[:, shared], log_rms])
