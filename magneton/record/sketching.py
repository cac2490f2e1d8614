"""Sketch an array with NumPy: the reference for every framework's own, faster way.

``magneton.record.torch.sketching`` computes the same numbers where the tensors are; a test holds the two
together.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from magneton.profile.sketches import FREQUENCIES, Sketch

HUGE = 1e30  # finite numbers beyond this are masks (finfo.min), not data
SAMPLE = 4096  # elements looked at to tell a mask from data
LOWEST = -2  # the window of frequencies starts two half octaves below 1/rms: at 0.5/rms
PROJECTION_PERIOD = 65521  # prime, so that no usual dimension is a multiple of it


@cache
def projection_weights(seed: int = 0) -> NDArray[np.float64]:
    """The seeded weights of the order-sensitive projections, [2, 65521], repeated over longer tensors.

    Uniform in [-1, 1), from the generator's raw bits: NumPy keeps that stream for ever, but not those
    of its distributions, and two systems may run under different releases.
    """
    raw = np.random.PCG64(seed).random_raw(2 * PROJECTION_PERIOD)
    return (raw >> np.uint64(11)).astype(np.float64).reshape(2, -1) * 2.0**-52 - 1.0


def first_frequency(rms: float) -> int:
    """Index on the half-octave grid of the lowest frequency for data of this ``rms``; 0 octaves for 0."""
    octave = round(-math.log2(rms)) if rms > 0 else 0
    return 2 * octave + LOWEST


def sample_step(count: int) -> int:
    """The stride at which ``distinct`` looks at a tensor of ``count`` elements."""
    return max(1, count // SAMPLE)


def sketch_array(array: NDArray[np.generic]) -> Sketch | None:
    """The sketch of ``array`` of any shape and layout; None where it has no elements or no numbers."""
    if array.size == 0 or array.dtype.kind not in "biufc":
        return None
    logical = np.ascontiguousarray(array).reshape(-1)
    if logical.dtype.kind == "c":
        logical = np.stack([logical.real, logical.imag], axis=-1).reshape(-1)
    x = logical.astype(np.float64)
    finite = np.isfinite(x)
    ordinary = finite & (np.abs(x) <= HUGE)
    data = np.where(ordinary, x, 0.0)
    kept = int(ordinary.sum())
    rms = math.sqrt(float(np.square(data).sum()) / kept) if kept else 0.0
    first = first_frequency(rms)
    selected = data[ordinary]
    cos_sum, sin_sum = zip(
        *(
            (float(np.cos(f * selected).sum()), float(np.sin(f * selected).sum()))
            for f in (2.0 ** ((first + i) / 2) for i in range(FREQUENCIES))
        ),
        strict=True,
    )
    step = sample_step(x.size)
    weights = projection_weights()
    repeats = -(-x.size // PROJECTION_PERIOD)
    one, two = (float(np.tile(w, repeats)[: x.size] @ data) for w in weights)
    return Sketch(
        count=int(x.size),
        pos_inf=int(np.isposinf(x).sum()),
        neg_inf=int(np.isneginf(x).sum()),
        nan=int(np.isnan(x).sum()),
        huge=int((finite & ~ordinary).sum()),
        distinct=int(np.unique(x[::step][:SAMPLE]).size),
        rms=rms,
        first=first,
        cos_sum=cos_sum,
        sin_sum=sin_sum,
        projection=(one, two),
    )
