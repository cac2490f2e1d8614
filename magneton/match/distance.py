"""How far equal values of two systems may be apart (``magneton.profile.distance``), and what may anchor.

Independent values of one distribution differ by about 1/sqrt(n) in the means that a sketch holds, and noise
averages out, so the threshold shrinks with the size (measured: docs/decisions/0002-sketches.md).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from magneton.profile.distance import Reals
from magneton.profile.sketches import Sketches

SAME_SIDE = 2e-6  # equal values of one run; looser merges `mean` with `mean + eps`
FEWEST_DISTINCT = 10  # masks, constants, scalars and small integers have fewer different numbers


def threshold(count: NDArray[Any]) -> Reals:
    """The largest distance at which values of ``count`` elements from two systems pass for equal."""
    shrinking = 0.1 / np.sqrt(np.maximum(count, 1).astype(np.float64))
    return np.minimum(2e-3, np.maximum(5e-5, shrinking))


def anchors(sketches: Sketches) -> NDArray[np.bool_]:
    """Which values hold enough different numbers to be recognised by their sketch alone, [V]."""
    return sketches.known & (sketches.distinct >= FEWEST_DISTINCT)
