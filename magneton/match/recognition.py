"""Why one value has the counterpart that it has, or none: what else was near, and how far.

In: one phase as it was aligned, and a value of either side. Out: a verdict, the pair that speaks of the
value, and the classes of the other side that were considered. It repeats no rule: the distances, the
limit and the pairs are those of the alignment.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from magneton.match.anchor import Side, Spot
from magneton.match.distance import loosened, threshold
from magneton.match.frontier import Laid
from magneton.match.marks import spots_of
from magneton.match.model import SideName
from magneton.match.phases import Alignment
from magneton.profile.distance import distances
from magneton.profile.model import ValueId
from magneton.profile.sketches import Sketches

MOST_RIVALS = 3  # nearest classes of the other side that are named
KINDS = ("count", "pos_inf", "neg_inf", "nan", "huge")  # columns of a sketch that must agree exactly

Verdict = Literal[
    "paired",
    "no-content",  # what memory happened to hold, or a result beside those that are used
    "not-sketched",
    "low-entropy",
    "stray",  # equals a paired value, and nothing on the other side computes it from the same
    "other-generation",  # its class is paired, and ran out of generations on the other side
    "dropped",  # was paired; regions would have closed a circle, or their sides read different values
    "ambiguous",  # near enough to several that nothing tells apart
    "taken",  # near enough only to what is paired with something else
    "unconfirmed",  # near enough for how far the values drift, but their neighbours do not agree
    "too-far",
    "nothing-comparable",  # no value of the other side has as many elements, or as many of them not finite
]
Fate = Literal["paired", "open", "taken", "second", "drifted", "too-far", "other-counts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A value class of the other side, by its first value. ``taken``: by these values of our side."""

    value: ValueId
    distance: float  # infinite where sketches cannot be compared
    allowed: float  # the largest at which it may be paired, if neighbours agree: both values may drift
    fate: Fate
    taken: tuple[ValueId, ...]
    differs: tuple[str, ...]  # columns of the sketch that should agree and do not


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognition:
    """``pair`` indexes the alignment's anchors. ``root`` computed what this value may only lay out anew."""

    value: ValueId
    verdict: Verdict
    pair: int | None
    root: ValueId
    class_size: int  # values of this side that are rearrangements of it, itself included
    generation: int
    generations: int
    count: int
    distinct: int  # different numbers among the sampled elements
    high_entropy: bool
    drift: float | None  # how far rounding was measured to move its class; None: not measured
    limit: float  # the largest distance at which a value of the other side passes for equal by itself
    within: int  # value classes of the other side within it
    rivals: tuple[Rival, ...]  # the nearest first


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """An alignment as one side sees it: the spots of both sides by anchor, kept or dropped."""

    side: SideName
    ours: Laid
    theirs: Laid
    spots: tuple[tuple[Spot, ...], ...]
    counterparts: tuple[tuple[Spot, ...], ...]
    dropped: tuple[tuple[Spot, ...], ...]
    dropped_counterparts: tuple[tuple[Spot, ...], ...]
    ambiguous: frozenset[int]


def view_from(alignment: Alignment, side: SideName) -> View:
    laid = alignment.baseline, alignment.candidate
    spots = spots_of(alignment.anchors)
    dropped = spots_of(alignment.dropped)
    ambiguous = alignment.ambiguous_baseline, alignment.ambiguous_candidate
    at = 0 if side == "baseline" else 1
    return View(
        side=side,
        ours=laid[at],
        theirs=laid[1 - at],
        spots=tuple(spots[at]),
        counterparts=tuple(spots[1 - at]),
        dropped=tuple(dropped[at]),
        dropped_counterparts=tuple(dropped[1 - at]),
        ambiguous=ambiguous[at],
    )


def recognise(view: View, value: ValueId) -> Recognition:
    side, sketches = view.ours.side, view.ours.side.wiring.profile.sketches
    count, distinct = int(sketches.count[value]), int(sketches.distinct[value])
    limit = float(threshold(sketches.count[[value]])[0])
    which = side.classes.of.get(value)
    first = value if which is None else side.classes.members[which][0]
    drift = side.wiring.profile.values[first].drift
    if which is None or not sketches.known[value]:
        return Recognition(
            value=value, verdict="no-content" if which is None else "not-sketched",
            pair=view.ours.marks.anchor.get(value), root=value, class_size=1, generation=0, generations=1,
            count=count, distinct=distinct, high_entropy=False, drift=drift, limit=limit, within=0, rivals=(),
        )  # fmt: skip
    spot = Spot(which=which, generation=side.classes.generation[value])
    rivals, within = _rivals(view, which)
    return Recognition(
        value=value,
        verdict=_verdict(view, value, spot, rivals, within),
        pair=view.ours.marks.anchor.get(value),
        root=ValueId(_root(side, spot, value)),
        class_size=len(side.classes.members[which]),
        generation=spot.generation,
        generations=len(side.classes.roots[which]),
        count=count,
        distinct=distinct,
        high_entropy=side.classes.high_entropy[which],
        drift=drift,
        limit=limit,
        within=within,
        rivals=rivals,
    )


def _root(side: Side, spot: Spot, value: int) -> int:
    """The nearest root above ``value``: itself, or what it lays out anew."""
    roots, wiring = side.classes.roots[spot.which][spot.generation], side.wiring
    of, generation = side.classes.of, side.classes.generation
    while value not in roots:
        read = wiring.inputs[wiring.producer[value]]
        value = next(v for v in read if of.get(v) == spot.which and generation[v] == spot.generation)
    return value


def _verdict(view: View, value: int, spot: Spot, rivals: Sequence[Rival], within: int) -> Verdict:
    if value in view.ours.marks.anchor:
        return "paired"
    if any(spot in parts for parts in view.dropped):
        return "dropped"
    if any(spot in parts for parts in view.spots):
        return "stray"
    if any(other.which == spot.which for parts in view.spots for other in parts):
        return "other-generation"
    if not view.ours.side.classes.high_entropy[spot.which]:
        return "low-entropy"
    if spot.which in view.ambiguous:
        return "ambiguous"
    if within:
        return "taken"
    drifted = [rival for rival in rivals if rival.fate == "drifted"]
    if drifted:
        return "taken" if all(rival.taken for rival in drifted) else "unconfirmed"
    return "too-far" if any(rival.fate == "too-far" for rival in rivals) else "nothing-comparable"


def _rivals(view: View, which: int) -> tuple[tuple[Rival, ...], int]:
    """The nearest classes of the other side that are as rich in different numbers, and how many are near."""
    ours, theirs = view.ours.side, view.theirs.side
    sketches_x, sketches_y = ours.wiring.profile.sketches, theirs.wiring.profile.sketches
    alike = [
        c for c, high in enumerate(theirs.classes.high_entropy)
        if high == ours.classes.high_entropy[which] and sketches_y.known[theirs.classes.members[c][0]]
    ]  # fmt: skip
    first = ours.classes.members[which][0]
    rows = np.array([theirs.classes.members[c][0] for c in alike], dtype=np.int64)
    apart = distances(sketches_x, np.full(len(rows), first), sketches_y, rows)
    limit = float(threshold(sketches_x.count[[first]])[0])
    drift = np.maximum(ours.wiring.drift[first], theirs.wiring.drift[rows])
    allowed = loosened(sketches_y.count[rows], drift if ours.classes.high_entropy[which] else 0.0 * drift)
    same_count = sketches_y.count[rows] == sketches_x.count[first]
    order = [k for k in np.lexsort([rows, apart]).tolist() if np.isfinite(apart[k]) or same_count[k]]
    mine = {c for c, ours_too in _mates(view.spots, view.counterparts).items() if which in ours_too}
    mates = _mates((*view.spots, *view.dropped), (*view.counterparts, *view.dropped_counterparts))
    chosen = [k for k in order if alike[k] in mine or k in order[:MOST_RIVALS]][: MOST_RIVALS + len(mine)]
    rivals = tuple(
        Rival(
            value=ValueId(int(rows[k])),
            distance=float(apart[k]),
            allowed=float(allowed[k]),
            fate=_fate(
                float(apart[k]), (limit, float(allowed[k])), alike[k] in mine, alike[k] in mates, bool(mine)
            ),
            taken=tuple(ValueId(ours.classes.members[c][0]) for c in mates.get(alike[k], ()) if c != which),
            differs=_differing(sketches_x, first, sketches_y, int(rows[k])),
        )
        for k in chosen
    )
    return rivals, int(np.count_nonzero(apart <= limit))


def _mates(
    spots: Sequence[Sequence[Spot]], counterparts: Sequence[Sequence[Spot]]
) -> Mapping[int, tuple[int, ...]]:
    """The classes of our side that each class of the other is paired with."""
    mates: dict[int, dict[int, None]] = {}
    for ours, theirs in zip(spots, counterparts, strict=True):
        for there in theirs:
            mates.setdefault(there.which, {}).update((spot.which, None) for spot in ours)
    return {which: tuple(found) for which, found in mates.items()}


def _fate(apart: float, limits: tuple[float, float], is_mate: bool, is_taken: bool, has_mate: bool) -> Fate:
    if is_mate:
        return "paired"
    limit, allowed = limits
    if apart > allowed:
        return "too-far" if np.isfinite(apart) else "other-counts"
    if apart > limit:
        return "drifted"
    if is_taken:
        return "taken"
    return "second" if has_mate else "open"


def _differing(sketches_x: Sketches, x: int, sketches_y: Sketches, y: int) -> tuple[str, ...]:
    columns: list[tuple[str, NDArray[np.int64], NDArray[np.int64]]] = [
        (name, getattr(sketches_x, name), getattr(sketches_y, name)) for name in KINDS
    ]
    return tuple(name for name, ours, theirs in columns if ours[x] != theirs[y])
