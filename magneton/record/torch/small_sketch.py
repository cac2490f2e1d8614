"""Sketch a few thousand numbers: the same figures with as few calls as possible.

Most tensors of a step are small, and there the cost is the calls, not the elements. In: numbers in logical
order. Out: their sketch, computed in float64 all at once; sines and cosines of enough numbers that are no
finer than float32 in float32.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from magneton.profile.sketches import FREQUENCIES, Sketch
from magneton.record.sketching import HUGE, SAMPLE, first_frequency, projection_weights

SQUARABLE = (1e-15, 1e15)  # magnitudes whose squares a float32 can add up
SMALL = SAMPLE  # up to here ``distinct`` looks at every element, in whatever order
AVERAGED = 512  # numbers, over which the rounding of float32 averages out


def sketch_small(numbers: NDArray[np.float64], *, narrow: bool = False) -> Sketch:
    """The sketch of at least one and at most ``SMALL`` numbers; ``narrow``: none is finer than float32."""
    magnitude = np.abs(numbers)
    data, outside = numbers, 0
    if not float(magnitude.max()) <= HUGE:  # a NaN compares False
        ordinary = magnitude <= HUGE
        data = np.where(ordinary, numbers, 0.0)
        outside = numbers.size - int(ordinary.sum())
    kept = numbers.size - outside
    rms = math.sqrt(float(data @ data) / kept) if kept else 0.0
    first = first_frequency(rms)
    cos_sum, sin_sum = wave_sums(data, first, narrow=narrow and SQUARABLE[0] <= rms <= SQUARABLE[1])
    pos_inf, neg_inf, nan = _non_finite(numbers) if outside else (0, 0, 0)
    return Sketch(
        count=numbers.size,
        pos_inf=pos_inf,
        neg_inf=neg_inf,
        nan=nan,
        huge=outside - pos_inf - neg_inf - nan,
        distinct=count_distinct(numbers),
        rms=rms,
        first=first,
        cos_sum=tuple(total - outside for total in cos_sum),  # what entered as 0 gave cos 0 = 1
        sin_sum=tuple(sin_sum),
        projection=project_small(data),
    )


def project_small(numbers: NDArray[np.float64]) -> tuple[float, float]:
    one, two = (_weights()[:, : numbers.size] @ numbers).tolist()
    return one, two


def count_distinct(numbers: NDArray[np.floating]) -> int:
    """Different numbers; all NaNs are one."""
    ordered = np.sort(numbers)  # NaNs go last
    nan = int(np.isnan(ordered[-1:]).sum()) and int(np.isnan(ordered).sum())
    real = ordered[: ordered.size - nan]
    return int((real[1:] != real[:-1]).sum()) + int(real.size > 0) + int(nan > 0)


def wave_sums(
    data: NDArray[np.float64], first: int, *, narrow: bool
) -> tuple[Sequence[float], Sequence[float]]:
    """Sums of cos(f x) and of sin(f x) at the nine frequencies from ``first`` on.

    cos 2x = 1 - 2 sin^2 x and sin 2x = 2 sin x cos x lead from two frequencies to the octaves above.
    """
    kind = np.float32 if narrow and data.size >= AVERAGED else np.float64
    lowest = np.array([2.0 ** (first / 2), 2.0 ** ((first + 1) / 2)])
    angle = np.multiply.outer(lowest, data).astype(kind, copy=False)
    wave = np.stack((np.cos(angle), np.sin(angle)))  # [2, 2, N]: cosine and sine, at either frequency
    sums = [np.add.reduce(wave, axis=2, dtype=np.float64)]
    while 2 * len(sums) < FREQUENCIES:
        cosine, sine = wave
        square = sine * sine
        sine *= cosine
        sine += sine
        square += square
        np.subtract(1.0, square, out=cosine)
        sums.append(np.add.reduce(wave, axis=2, dtype=np.float64))
    cos_sum, sin_sum = np.concatenate(sums, axis=1)[:, :FREQUENCIES].tolist()
    return cos_sum, sin_sum


def _non_finite(numbers: NDArray[np.float64]) -> tuple[int, int, int]:
    pos_inf, neg_inf = int((numbers == np.inf).sum()), int((numbers == -np.inf).sum())
    return pos_inf, neg_inf, int(np.isnan(numbers).sum())


@lru_cache(maxsize=1)
def _weights() -> NDArray[np.float64]:
    return np.ascontiguousarray(projection_weights()[:, :SMALL])
