"""Align one phase of two profiles: anchors, then regions between them.

Where regions depend on one another in a circle, first what was joined there by choice comes apart; then
the weakest anchor of each circle is dropped; circles that are still there at the end become one region.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from magneton.match.anchor import Anchor, Side, Spot
from magneton.match.classes import classify
from magneton.match.composites import concatenations, pair_composites
from magneton.match.context import pair_low_entropy
from magneton.match.frontier import Laid, both_edges, misfits, repair
from magneton.match.marks import mark, spots_of
from magneton.match.model import Evidence
from magneton.match.pairing import pair_values
from magneton.match.parameters import pair_sources
from magneton.match.quotient import cycles
from magneton.match.reach import SINK, settle
from magneton.match.strays import Strays, find_strays, unvouched
from magneton.match.unions import Unions
from magneton.match.wiring import Wiring

MOST_DROPS = 8  # rounds of dropping anchors before circles are merged
MOST_REPAIRS = 4
MOST_COINCIDENCES = 4  # rounds of dropping anchors that make the sides of a region differ

STRENGTH: dict[Evidence, int] = {"order": 0, "context": 1, "composite": 2, "value": 3}

_Layout = tuple[tuple[Anchor, ...], Unions, tuple[Laid, Laid]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Alignment:
    """Both sides of one phase laid out between common anchors; the groups are of anchors.

    The first ``bounds`` anchors were there when regions were laid out; the others are sources found since.
    """

    anchors: tuple[Anchor, ...]
    bounds: int
    dropped: tuple[Anchor, ...]  # they would close a circle of regions, or are coincidences
    groups: Unions
    baseline: Laid
    candidate: Laid
    ambiguous_baseline: frozenset[int]  # classes
    ambiguous_candidate: frozenset[int]


def align(baseline: Wiring, candidate: Wiring) -> Alignment:
    sides = (
        Side(wiring=baseline, classes=classify(baseline)),
        Side(wiring=candidate, classes=classify(candidate)),
    )
    by_value, ambiguous_x, ambiguous_y = pair_values(*sides)
    found = tuple(sorted(pair_low_entropy(*sides, pair_composites(*sides, by_value)), key=_rank))
    strays = find_strays(*sides, found)
    # Sources are known by their readers. Those that are known now (a cache, part of a larger one) count when
    # it is judged whether both sides of a region read the same.
    found += pair_sources(*_lay_out(sides, strays, found, _glued_composites(found), frozenset(), repairs=0))
    anchors, groups, laid = _without_misfits(sides, found, strays)
    bounds, kept = len(anchors), frozenset(anchors)
    sources = pair_sources(*laid)
    for _ in sources:
        groups.add()
    anchors += sources
    spots_x, spots_y = spots_of(anchors)
    return Alignment(
        anchors=anchors,
        bounds=bounds,
        dropped=tuple(anchor for anchor in found if anchor not in kept),
        groups=groups,
        baseline=replace(laid[0], marks=mark(sides[0], spots_x, strays[0])),
        candidate=replace(laid[1], marks=mark(sides[1], spots_y, strays[1])),
        ambiguous_baseline=ambiguous_x,
        ambiguous_candidate=ambiguous_y,
    )


def _rank(anchor: Anchor) -> tuple[bool, Sequence[tuple[Spot, ...]]]:
    """An order that does not depend on which side is called the baseline; composites after their parts."""
    return anchor.evidence == "composite", sorted([anchor.baseline, anchor.candidate])


def _without_misfits(
    sides: tuple[Side, Side], anchors: tuple[Anchor, ...], strays: tuple[Strays, Strays]
) -> _Layout:
    """Where a region's sides read different anchors to the last, one of these is a coincidence: it goes."""
    best = _without_circles(sides, anchors, strays)
    wrong = misfits(*best[2], best[1])
    for _ in range(MOST_COINCIDENCES):
        doubtful = unvouched(*sides, best[0]) if wrong else frozenset()
        dropped = {_weakest(best[0], apart & doubtful) for apart in wrong if apart & doubtful}
        if not dropped:
            break
        kept = tuple(anchor for index, anchor in enumerate(best[0]) if index not in dropped)
        other = _without_circles(sides, kept, strays)
        left = misfits(*other[2], other[1])
        if len(left) >= len(wrong):
            break
        best, wrong = other, left
    return best


def _without_circles(
    sides: tuple[Side, Side], anchors: tuple[Anchor, ...], strays: tuple[Strays, Strays]
) -> _Layout:
    loners: frozenset[Anchor] = frozenset()
    for _ in range(MOST_DROPS):
        groups = _glued_composites(anchors)
        laid = _lay_out(sides, strays, anchors, groups, loners)
        knots = cycles(both_edges(*laid))
        if not knots:
            return anchors, groups, laid
        joined = _joined(anchors, groups, knots) - loners
        loners |= joined
        if not joined:
            anchors = _without_weakest(anchors, groups, knots)
    groups = _glued_composites(anchors)
    while True:
        laid = _lay_out(sides, strays, anchors, groups, loners)
        merges = groups.merges
        for knot in cycles(both_edges(*laid)):
            first, *others = [group for group in knot if group >= 0] or [SINK]
            for other in others:
                groups.union(first, other)
        if groups.merges == merges:
            return anchors, groups, laid


def _joined(anchors: Sequence[Anchor], groups: Unions, knots: Sequence[Sequence[int]]) -> frozenset[Anchor]:
    """Anchors in the circles that were grouped with others by choice."""
    in_group: dict[int, list[Anchor]] = {}
    for index, anchor in enumerate(anchors):
        in_group.setdefault(groups.find(index), []).append(anchor)
    members = (in_group.get(group, []) for knot in knots for group in knot)
    return frozenset(anchor for found in members if len(found) > 1 for anchor in found)


def _lay_out(
    sides: tuple[Side, Side],
    strays: tuple[Strays, Strays],
    anchors: Sequence[Anchor],
    groups: Unions,
    loners: frozenset[Anchor],
    repairs: int = MOST_REPAIRS,
) -> tuple[Laid, Laid]:
    spots_x, spots_y = spots_of(anchors)
    alone = frozenset(index for index, anchor in enumerate(anchors) if anchor in loners)
    marks = mark(sides[0], spots_x, strays[0]), mark(sides[1], spots_y, strays[1])
    atoms = concatenations(sides, marks) if repairs else {}
    for left in reversed(range(repairs + 1)):
        reaches = settle(sides, marks, groups, alone)
        laid = (
            Laid(side=sides[0], marks=marks[0], reach=reaches[0]),
            Laid(side=sides[1], marks=marks[1], reach=reaches[1]),
        )
        if not left or not repair(*laid, groups, alone, atoms):
            return laid
    raise AssertionError("the last round returns")


def _glued_composites(anchors: Sequence[Anchor]) -> Unions:
    """A group for each anchor; a whole and its parts, where those are anchors themselves, are one."""
    groups = Unions(len(anchors))
    whole = [anchor.evidence == "composite" for anchor in anchors]
    for side in spots_of(anchors):
        alone = {parts[0]: k for k, parts in enumerate(side) if not whole[k]}
        for index in (k for k in range(len(anchors)) if whole[k]):
            for spot in side[index]:
                groups.union(index, alone.get(spot, index))
    return groups


def _without_weakest(
    anchors: Sequence[Anchor], groups: Unions, knots: Sequence[Sequence[int]]
) -> tuple[Anchor, ...]:
    in_group: dict[int, list[int]] = {}
    for index in range(len(anchors)):
        in_group.setdefault(groups.find(index), []).append(index)
    dropped: set[int] = set()
    for knot in knots:
        suspects = [index for group in knot for index in in_group.get(group, ())]
        if suspects:
            dropped.add(_weakest(anchors, suspects))
    return tuple(anchor for index, anchor in enumerate(anchors) if index not in dropped)


def _weakest(anchors: Sequence[Anchor], suspects: Iterable[int]) -> int:
    return min(suspects, key=lambda k: (STRENGTH[anchors[k].evidence], -anchors[k].distance, k))
