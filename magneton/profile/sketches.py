"""Sketches: what is kept of a tensor so that equal values are recognised whatever their layout.

The signature is the empirical characteristic function of the elements: sums of cos(f x) and sin(f x)
at nine frequencies on a fixed grid of half octaves around 1/rms (facts and alternatives measured in
docs/decisions/0002-sketches.md). Sums, not means: the sketch of a concatenation is the sum of its
parts' wherever their frequencies overlap. It is blind to the order of elements, so sketches align
values and never certify them; ``projection`` is the seeded, order-sensitive companion.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SKETCH_VERSION = 1
FREQUENCIES = 9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sketches:
    """One row per value, struct of arrays. Row k is meaningless where ``known[k]`` is False.

    Frequency ``i`` of row ``k`` is ``2 ** ((first[k] + i) / 2)``. Counts of non-finite and huge
    elements are apart: those elements enter neither ``rms`` nor the sums.
    """

    known: NDArray[np.bool_]  # [V] False where a value was not sketched (empty, opaque dtype, over the cap)
    count: NDArray[np.int64]  # [V] elements (of real numbers: a complex element counts as two)
    pos_inf: NDArray[np.int64]  # [V]
    neg_inf: NDArray[np.int64]  # [V]
    nan: NDArray[np.int64]  # [V]
    huge: NDArray[np.int64]  # [V] finite, |x| > 1e30: masks made of finfo.min
    distinct: NDArray[np.int32]  # [V] different numbers among at most 4096 sampled elements
    rms: NDArray[np.float64]  # [V] of the ordinary elements
    first: NDArray[np.int32]  # [V] index of the lowest frequency on the half-octave grid
    cos_sum: NDArray[np.float64]  # [V, 9]
    sin_sum: NDArray[np.float64]  # [V, 9]
    projection: NDArray[np.float64]  # [V, 2] seeded sums over elements in logical order; order-sensitive


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """One row of ``Sketches``, as a worker writes it. Fields mean what they mean there."""

    count: int
    pos_inf: int
    neg_inf: int
    nan: int
    huge: int
    distinct: int
    rms: float
    first: int
    cos_sum: tuple[float, ...]
    sin_sum: tuple[float, ...]
    projection: tuple[float, float]


def stack_sketches(rows: Sequence[Sketch | None]) -> Sketches:
    """One table from the sketches of values 0, 1, 2, ...; None where a value has none."""
    nothing = Sketch(
        count=0,
        pos_inf=0,
        neg_inf=0,
        nan=0,
        huge=0,
        distinct=0,
        rms=0.0,
        first=0,
        cos_sum=(0.0,) * FREQUENCIES,
        sin_sum=(0.0,) * FREQUENCIES,
        projection=(0.0, 0.0),
    )
    filled = [nothing if row is None else row for row in rows]
    return Sketches(
        known=np.array([row is not None for row in rows], dtype=np.bool_),
        count=np.array([row.count for row in filled], dtype=np.int64),
        pos_inf=np.array([row.pos_inf for row in filled], dtype=np.int64),
        neg_inf=np.array([row.neg_inf for row in filled], dtype=np.int64),
        nan=np.array([row.nan for row in filled], dtype=np.int64),
        huge=np.array([row.huge for row in filled], dtype=np.int64),
        distinct=np.array([row.distinct for row in filled], dtype=np.int32),
        rms=np.array([row.rms for row in filled], dtype=np.float64),
        first=np.array([row.first for row in filled], dtype=np.int32),
        cos_sum=np.array([row.cos_sum for row in filled], dtype=np.float64).reshape(-1, FREQUENCIES),
        sin_sum=np.array([row.sin_sum for row in filled], dtype=np.float64).reshape(-1, FREQUENCIES),
        projection=np.array([row.projection for row in filled], dtype=np.float64).reshape(-1, 2),
    )
