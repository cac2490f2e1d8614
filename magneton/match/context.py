"""The second pass: values with few different numbers, which their sketch alone cannot tell apart.

Masks, constants, scalars and small integers pair when the sketch agrees, the nearest anchors they are
computed from are the same, and equally many such values exist on both sides; then in order.
"""

from collections.abc import Sequence

import numpy as np

from magneton.match.anchor import Anchor, Side, Spot
from magneton.match.distance import threshold
from magneton.match.marks import Near, mark, nearest, spots_of
from magneton.match.pairing import pair_generations
from magneton.profile.distance import distances, kind_keys

ROUNDS = 3  # a pair of the last round is an ancestor in the next
MOST_ALIKE = 64

Key = tuple[Near, tuple[int, ...]]


def pair_low_entropy(baseline: Side, candidate: Side, anchors: Sequence[Anchor]) -> tuple[Anchor, ...]:
    """``anchors``, and what the second pass adds."""
    known = tuple(anchors)
    for _ in range(ROUNDS):
        spots_x, spots_y = spots_of(known)
        alike_x = _alike(baseline, spots_x)
        alike_y = _alike(candidate, spots_y)
        new = [
            anchor
            for key in alike_x.keys() & alike_y.keys()
            for anchor in _pair_alike(baseline, alike_x[key], candidate, alike_y[key])
        ]
        if not new:
            break
        known += tuple(
            sorted(new, key=lambda anchor: (anchor.baseline[0].which, anchor.baseline[0].generation))
        )
    return known


def _alike(side: Side, spots: Sequence[tuple[Spot, ...]]) -> dict[Key, list[int]]:
    """Unpaired classes of low entropy, in order, by nearest anchors and counts."""
    sketches = side.wiring.profile.sketches
    taken = {spot.which for parts in spots for spot in parts}
    near = nearest(side, mark(side, spots), lambda index: True)
    alike: dict[Key, list[int]] = {}
    for which, high in enumerate(side.classes.high_entropy):
        value = side.classes.members[which][0]
        around = near.get(value)
        if high or which in taken or not around or not sketches.known[value]:
            continue
        kind = tuple(map(int, kind_keys(sketches, np.array([value]))[0]))
        alike.setdefault((around, kind), []).append(which)
    return {key: found for key, found in alike.items() if len(found) <= MOST_ALIKE}


def _pair_alike(baseline: Side, xs: Sequence[int], candidate: Side, ys: Sequence[int]) -> list[Anchor]:
    """Equal ones form heaps; a heap pairs with the equal heap of the other side if both are as large."""
    rows_x = np.array([baseline.classes.members[c][0] for c in xs], dtype=np.int64)
    rows_y = np.array([candidate.classes.members[c][0] for c in ys], dtype=np.int64)
    sketches_x, sketches_y = baseline.wiring.profile.sketches, candidate.wiring.profile.sketches
    limit = float(threshold(sketches_x.count[rows_x[:1]])[0])
    found: list[Anchor] = []
    left_x, left_y = np.arange(len(xs)), np.arange(len(ys))
    while len(left_x) and len(left_y):
        first = np.full(max(len(left_x), len(left_y)), rows_x[left_x[0]])
        near_x = distances(sketches_x, first[: len(left_x)], sketches_x, rows_x[left_x]) <= limit
        apart = distances(sketches_x, first[: len(left_y)], sketches_y, rows_y[left_y])
        heap_x, heap_y = left_x[near_x], left_y[apart <= limit]
        if len(heap_x) == len(heap_y):
            for x, y, d in zip(heap_x, heap_y, apart[apart <= limit], strict=True):
                found += pair_generations(baseline, xs[x], candidate, ys[y], "context", float(d))
        left_x, left_y = left_x[~near_x], left_y[apart > limit]
        if len(heap_x) == 0:
            break
    return found
