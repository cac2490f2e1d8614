"""Values that equal an anchored one by coincidence: what computes them has no counterpart.

Two norms, of x and of 2 x, hold the same. If one side computes the second one within a fused operator, the
other side's copy is no boundary: what reads it would seem to read what was made of x. A root is a stray if
the other side has fewer roots of the class, some root of this side is computed from the same anchors as one
of the other side, and this one is not.
"""

from collections.abc import Mapping, Sequence

from magneton.match.anchor import Anchor, Side, Spot
from magneton.match.marks import Near, mark, nearest, spots_of

Strays = frozenset[int]


def find_strays(baseline: Side, candidate: Side, anchors: Sequence[Anchor]) -> tuple[Strays, Strays]:
    """Roots of either side that are not to be marked."""
    spots = spots_of(anchors)
    uneven = [
        (x[0], y[0])
        for x, y in zip(*spots, strict=True)
        if len(x) == len(y) == 1 and len(_roots(baseline, x[0])) != len(_roots(candidate, y[0]))
    ]
    if not uneven:
        return frozenset(), frozenset()
    near_x, near_y = _behind(baseline, spots[0]), _behind(candidate, spots[1])
    strays_x: set[int] = set()
    strays_y: set[int] = set()
    for x, y in uneven:
        roots_x, roots_y = _roots(baseline, x), _roots(candidate, y)
        behind_x, behind_y = [near_x.get(v) for v in roots_x], [near_y.get(v) for v in roots_y]
        if len(roots_x) > len(roots_y):
            strays_x |= _without_counterpart(roots_x, behind_x, behind_y)
        else:
            strays_y |= _without_counterpart(roots_y, behind_y, behind_x)
    return frozenset(strays_x), frozenset(strays_y)


def unvouched(baseline: Side, candidate: Side, anchors: Sequence[Anchor]) -> frozenset[int]:
    """Single anchors that the two sides compute from different ones: they may be a coincidence.

    Where a composite is among these, it may hold what the other side reads.
    """
    spots = spots_of(anchors)
    whole = frozenset(k for k, anchor in enumerate(anchors) if anchor.evidence == "composite")
    near = _behind(baseline, spots[0]), _behind(candidate, spots[1])

    def apart(x: Spot, y: Spot) -> bool:
        behind_x = {near[0].get(value) for value in _roots(baseline, x)}
        behind_y = {near[1].get(value) for value in _roots(candidate, y)}
        composed = any(found and found & whole for found in behind_x | behind_y)
        return behind_x.isdisjoint(behind_y) and not composed

    singles = ((k, x[0], y[0]) for k, (x, y) in enumerate(zip(*spots, strict=True)) if len(x) == len(y) == 1)
    return frozenset(k for k, x, y in singles if apart(x, y))


def _behind(side: Side, spots: Sequence[tuple[Spot, ...]]) -> Mapping[int, Near | None]:
    """The nearest anchors that each value of ``side`` is computed from."""
    return nearest(side, mark(side, spots), lambda index: True)


def _without_counterpart(
    roots: Sequence[int], behind: Sequence[Near | None], others: Sequence[Near | None]
) -> set[int]:
    known = set(others)
    apart = {root for root, near in zip(roots, behind, strict=True) if near not in known}
    return apart if len(apart) < len(roots) else set()


def _roots(side: Side, spot: Spot) -> Sequence[int]:
    return side.classes.roots[spot.which][spot.generation]
