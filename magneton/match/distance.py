"""How far equal values of two systems may be apart (``magneton.profile.distance``), and what may anchor.

Independent values of one distribution differ by about 1/sqrt(n) in the means that a sketch holds, and noise
averages out, so the threshold shrinks with the size (measured: docs/decisions/0002-sketches.md). Where a
recording has measured that a value drifts farther than that from itself when numbers are rounded otherwise
(``Value.drift``), more is allowed, but only to what the graph says is the same as well.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from magneton.profile.distance import Reals
from magneton.profile.model import Profile
from magneton.profile.sketches import Sketches

SAME_SIDE = 2e-6  # equal values of one run; looser merges `mean` with `mean + eps`
# bfloat16 lay at most 3.2 times as far from float32 as from itself under noise (docs/decisions/0006).
SLACK = 4.0
LOOSEST = 0.05  # beyond this a distance says nothing, whatever drifts
FEWEST_DISTINCT = 10  # masks, constants, scalars and small integers have fewer different numbers


def threshold(count: NDArray[Any]) -> Reals:
    """The largest distance at which values of ``count`` elements from two systems pass for equal."""
    shrinking = 0.1 / np.sqrt(np.maximum(count, 1).astype(np.float64))
    return np.minimum(2e-3, np.maximum(5e-5, shrinking))


def drifts(profile: Profile) -> Reals:
    """[V] the drift of each value, 0.0 where none was measured."""
    return np.array([value.drift or 0.0 for value in profile.values], dtype=np.float64)


def loosened(count: NDArray[Any], drift: Reals) -> Reals:
    """The largest distance of equal values that drift so far, where the graph agrees that they are equal."""
    return np.maximum(threshold(count), np.minimum(LOOSEST, SLACK * drift))


def anchors(sketches: Sketches) -> NDArray[np.bool_]:
    """Which values hold enough different numbers to be recognised by their sketch alone, [V]."""
    return sketches.known & (sketches.distinct >= FEWEST_DISTINCT)
