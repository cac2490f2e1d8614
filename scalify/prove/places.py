"""Index maps as what they are, functions on whole numbers, tried at corners and at random places.

This knows nothing of digits in normal form, of composition or of inversion: where those were wrong, a claim
of theirs would fail here.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalify.layout.maps import IndexMap, Shape

Points = NDArray[np.int64]
"""One column a point: indices along each dimension."""

RANDOM_POINTS = 64
MOST_CORNERS = 32


@lru_cache(maxsize=4096)
def points_of(shape: Shape) -> Points:
    """Corners of a box, and random points in it; the same for the same box."""
    sizes = np.array(shape, dtype=np.int64)
    ends = [(0, size - 1) if size > 1 else (0,) for size in shape]
    corners = [corner for corner, _ in zip(product(*ends), range(MOST_CORNERS), strict=False)]
    last = np.maximum(sizes - 1, 0)
    numbers = np.random.default_rng(len(shape)).random((len(shape), RANDOM_POINTS))
    inside = np.minimum((numbers * sizes[:, None]).astype(np.int64), last[:, None])
    edges = np.array(corners, dtype=np.int64).reshape(-1, len(shape)).T
    return np.concatenate([edges, last[:, None], inside], axis=1)


def all_points(shape: Shape) -> Points:
    """Every point of a box."""
    return np.indices(shape, dtype=np.int64).reshape(len(shape), -1)


def read_at(index: IndexMap, points: Points) -> Points:
    """Where a map reads, from each of the points."""
    read = np.empty((len(index.coordinates), points.shape[1]), dtype=np.int64)
    for dim, expr in enumerate(index.coordinates):
        total: Any = expr.offset
        for source, stride, size, factor in expr.terms:
            digit = points[source] if stride == 1 else points[source] // stride
            if stride * size < index.domain[source]:
                digit = digit % size
            total = total + factor * digit
        read[dim] = total
    return read


def moved(points: Points, by: Sequence[int]) -> Points:
    """Points by which a window is entered, or left where the numbers are negative."""
    return points + np.array(by, dtype=np.int64)[:, None]


def are_inside(points: Points, shape: Shape) -> bool:
    """Whether all points lie in a box."""
    sizes = np.array(shape, dtype=np.int64)[:, None]
    return bool(((points >= 0) & (points < sizes)).all())
