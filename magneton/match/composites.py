"""A value of one side that is the concatenation of several of the other (QKV, gate and up), or one padded.

Sketches are sums, so the sketch of a concatenation is the sum of its parts', and zeros add a known
number to it. Parts are looked for among siblings only: values computed from the very anchors that the
whole is computed from.
"""

from collections.abc import Sequence
from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from magneton.match.anchor import Anchor, Side, Spot
from magneton.match.distance import SAME_SIDE, loosened
from magneton.match.marks import Marks, Near, mark, nearest, spots_of
from magneton.profile.distance import FEWEST_SHARED, ordinary
from magneton.profile.sketches import FREQUENCIES, Sketches

MOST_SIBLINGS = 12
MOST_PARTS = 4


def pair_composites(baseline: Side, candidate: Side, anchors: Sequence[Anchor]) -> tuple[Anchor, ...]:
    """``anchors``, and wholes of either side with their parts on the other."""
    spots_x, spots_y = spots_of(anchors)
    carries = [_carries_data(baseline, anchor.baseline) for anchor in anchors]
    near_x = _by_class(baseline, spots_x, carries)
    near_y = _by_class(candidate, spots_y, carries)
    whole_in_baseline = _composites(baseline, near_x, spots_x, candidate, near_y)
    whole_in_candidate = _composites(candidate, near_y, spots_y, baseline, near_x)
    return (*anchors, *whole_in_baseline, *(anchor.turned() for anchor in whole_in_candidate))


def find_parts(
    whole_sketches: Sketches,
    whole: int,
    part_sketches: Sketches,
    parts: Sequence[int],
    *,
    drift: float = 0.0,
) -> tuple[tuple[int, ...], float] | None:
    """The fewest of ``parts`` whose sketches add up to that of ``whole``, and how far the sum is off."""
    rows = np.array(parts[:MOST_SIBLINGS], dtype=np.int64)
    whole_row = np.array([whole], dtype=np.int64)
    count = int(whole_sketches.count[whole])
    limit = float(loosened(whole_sketches.count[whole_row], np.array([drift]))[0])
    for size in range(2, min(MOST_PARTS, len(rows)) + 1):
        chosen = rows[_subsets(len(rows), size)]
        chosen = chosen[part_sketches.count[chosen].sum(axis=1) == count]
        best = min(
            (
                (_sum_distance(whole_sketches, whole, part_sketches, some), tuple(map(int, some)))
                for some in chosen
            ),
            default=(np.inf, ()),
        )
        if best[0] <= limit:
            return best[1], best[0]
    return None


def find_padded(
    whole_sketches: Sketches,
    whole: int,
    part_sketches: Sketches,
    parts: Sequence[int],
    *,
    drift: float = 0.0,
) -> tuple[tuple[int, ...], float] | None:
    """The one of ``parts`` of which ``whole`` is a copy in a larger room of zeros (a cache)."""
    for part in parts:
        rows = np.array([part], dtype=np.int64)
        zeros = int(whole_sketches.count[whole] - part_sketches.count[part])
        limit = float(loosened(part_sketches.count[rows], np.array([drift]))[0])
        off = _sum_distance(whole_sketches, whole, part_sketches, rows, zeros=zeros)
        if zeros > 0 and off <= limit:
            return (part,), off
    return None


def compose(whole_side: Side, which: int, part_side: Side, classes: Sequence[int]) -> Anchor | None:
    """Class ``which``, anchored as the baseline, with those of ``classes`` that it is made of."""
    sketches_x, sketches_y = whole_side.wiring.profile.sketches, part_side.wiring.profile.sketches
    whole = whole_side.classes.members[which][0]
    firsts = {part_side.classes.members[c][0]: c for c in classes}
    smaller = [v for v in firsts if sketches_y.count[v] < sketches_x.count[whole]]
    # Siblings are computed from the same anchors: the agreement of neighbours that drift asks for.
    drift = float(max((whole_side.wiring.drift[whole], *(part_side.wiring.drift[v] for v in smaller))))
    found = find_parts(sketches_x, whole, sketches_y, smaller, drift=drift) or find_padded(
        sketches_x, whole, sketches_y, smaller, drift=drift
    )
    if found is None:
        return None
    parts, off = found
    return Anchor(
        baseline=(Spot(which=which, generation=0),),
        candidate=tuple(Spot(which=firsts[v], generation=0) for v in parts),
        evidence="composite",
        distance=off,
    )


def concatenations(sides: Sequence[Side], marks: Sequence[Marks]) -> dict[int, frozenset[int]]:
    """Anchors that are made of other anchors, with the smallest ones they are made of.

    Reading all of the parts is reading the whole: the halves of a head, a cache of what was there and
    what is new.
    """
    parts: dict[int, tuple[int, ...]] = {}
    for side, marked in zip(sides, marks, strict=True):
        for read, written in zip(side.wiring.inputs, side.wiring.outputs, strict=True):
            if len(written) == 1 and len(read) > 1:
                _note_parts(side, marked, written[0], read, parts)
            elif len(read) == 1 and len(written) > 1:
                _note_parts(side, marked, read[0], written, parts)
    atoms: dict[int, frozenset[int]] = {}

    def resolve(anchor: int, above: frozenset[int]) -> frozenset[int]:
        if anchor not in parts or anchor in above:
            return frozenset((anchor,))
        if anchor not in atoms:
            deeper = (resolve(part, above | {anchor}) for part in parts[anchor])
            atoms[anchor] = frozenset().union(*deeper)
        return atoms[anchor]

    for anchor in sorted(parts):
        resolve(anchor, frozenset())
    return atoms


def _note_parts(
    side: Side, marks: Marks, whole: int, parts: Sequence[int], found: dict[int, tuple[int, ...]]
) -> None:
    sketches, anchor = side.wiring.profile.sketches, marks.anchor
    if whole not in anchor or anchor[whole] in found or any(part not in anchor for part in parts):
        return
    rows = np.array(parts, dtype=np.int64)
    if int(sketches.count[rows].sum()) != int(sketches.count[whole]):
        return
    if _sum_distance(sketches, whole, sketches, rows) <= SAME_SIDE:
        found[anchor[whole]] = tuple(anchor[part] for part in parts)


def _carries_data(side: Side, spots: Sequence[Spot]) -> bool:
    """Parameters and buffers are read by siblings and strangers alike: they do not make siblings."""
    values = side.wiring.profile.values
    first = side.classes.members[spots[0].which][0]
    return first in side.wiring.producer or values[first].role not in ("parameter", "buffer", "constant")


def _by_class(side: Side, spots: Sequence[tuple[Spot, ...]], carries: Sequence[bool]) -> dict[int, Near]:
    """The nearest anchors behind the first root of each class of high entropy."""
    near = nearest(side, mark(side, spots), lambda index: carries[index])
    return {
        which: around
        for which, high in enumerate(side.classes.high_entropy)
        if high and (around := near.get(side.classes.members[which][0]))
    }


def _composites(
    whole_side: Side,
    near_whole: dict[int, Near],
    spots: Sequence[tuple[Spot, ...]],
    part_side: Side,
    near_part: dict[int, Near],
) -> list[Anchor]:
    taken = {spot.which for parts in spots for spot in parts}
    siblings: dict[Near, list[int]] = {}
    for which, around in near_part.items():
        siblings.setdefault(around, []).append(which)
    found: list[Anchor] = []
    used: set[int] = set()
    for which, around in near_whole.items():
        if which in taken:
            continue
        anchor = compose(whole_side, which, part_side, [c for c in siblings.get(around, ()) if c not in used])
        if anchor is not None:
            used.update(spot.which for spot in anchor.candidate)
            found.append(anchor)
    return found


def _sum_distance(
    whole_sketches: Sketches,
    whole: int,
    part_sketches: Sketches,
    parts: NDArray[np.int64],
    *,
    zeros: int = 0,
) -> float:
    """Largest difference of mean features between ``whole`` and ``parts`` with ``zeros``, or of the rms."""
    row = np.array([whole], dtype=np.int64)
    apart = ("pos_inf", "neg_inf", "nan", "huge")
    if any(getattr(part_sketches, c)[parts].sum() != getattr(whole_sketches, c)[whole] for c in apart):
        return np.inf
    firsts = [int(whole_sketches.first[whole]), *map(int, part_sketches.first[parts])]
    low, high = max(firsts), min(firsts) + FREQUENCIES
    if high - low < FEWEST_SHARED:
        return np.inf
    cos = whole_sketches.cos_sum[whole, low - firsts[0] : high - firsts[0]].copy()
    sin = whole_sketches.sin_sum[whole, low - firsts[0] : high - firsts[0]].copy()
    for part, first in zip(parts, firsts[1:], strict=True):
        cos -= part_sketches.cos_sum[part, low - first : high - first]
        sin -= part_sketches.sin_sum[part, low - first : high - first]
    cos -= zeros  # cos(0)
    size = float(max(int(ordinary(whole_sketches, row)[0]) - zeros, 1))
    squares = float((ordinary(part_sketches, parts) * np.square(part_sketches.rms[parts])).sum())
    rms = float(whole_sketches.rms[whole]) * float(np.sqrt((size + zeros) / size))
    summed = float(np.sqrt(squares / size))
    relative = abs(rms - summed) / max(rms, summed, float(np.finfo(np.float64).tiny))
    return max(float(np.max(np.hypot(cos, sin))) / size, relative)


@cache
def _subsets(count: int, size: int) -> NDArray[np.int64]:
    return np.array(list(combinations(range(count), size)), dtype=np.int64).reshape(-1, size)
