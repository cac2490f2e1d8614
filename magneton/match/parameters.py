"""What existed before the phase and only the regions that read it can tell to be the same.

Parameters that a region reads whole on one side and in parts on the other (fused QKV weights), caches
with more or less room to grow, and masks, scales and constants that hold too few different numbers to
be recognised anywhere.
"""

from collections.abc import Sequence

from magneton.match.anchor import Anchor, Side, Spot
from magneton.match.composites import compose
from magneton.match.distance import threshold
from magneton.match.frontier import Laid
from magneton.profile.distance import distance


def pair_sources(baseline: Laid, candidate: Laid) -> tuple[Anchor, ...]:
    """Anchors between unpaired sources that one region consumes. They move no operator."""
    unknown_x, unknown_y = _unknown(baseline), _unknown(candidate)
    side_x, side_y = baseline.side, candidate.side
    found: list[Anchor] = []
    used_x: set[int] = set()
    used_y: set[int] = set()
    for region in sorted(region for region in unknown_x.keys() & unknown_y.keys() if region >= 0):
        found += _equal(side_x, unknown_x[region], used_x, side_y, unknown_y[region], used_y)
        found += _split(side_x, unknown_x[region], used_x, side_y, unknown_y[region], used_y)
        turned = _split(side_y, unknown_y[region], used_y, side_x, unknown_x[region], used_x)
        found += [anchor.turned() for anchor in turned]
    return tuple(found)


def _unknown(laid: Laid) -> dict[int, list[int]]:
    """Classes of unpaired sources, in the order in which each region reads them."""
    wiring, classes = laid.side.wiring, laid.side.classes
    known = wiring.profile.sketches.known
    found: dict[int, dict[int, None]] = {}
    for read, region in zip(wiring.inputs, laid.reach.region, strict=True):
        for value in read:
            if value not in wiring.producer and value not in laid.marks.anchor and known[value]:
                found.setdefault(region, {})[classes.of[value]] = None
    return {region: list(which) for region, which in found.items()}


def _equal(
    side_x: Side, xs: Sequence[int], used_x: set[int], side_y: Side, ys: Sequence[int], used_y: set[int]
) -> list[Anchor]:
    """Low-entropy sources: each with the first equal one that its region reads on the other side."""
    sketches_x, sketches_y = side_x.wiring.profile.sketches, side_y.wiring.profile.sketches
    found: list[Anchor] = []
    for x in xs:
        value = side_x.classes.members[x][0]
        limit = float(threshold(sketches_x.count[[value]])[0])
        for y in ys:
            if x in used_x or y in used_y or side_x.classes.high_entropy[x]:
                continue
            apart = distance(sketches_x, value, sketches_y, side_y.classes.members[y][0])
            if apart <= limit:
                used_x.add(x)
                used_y.add(y)
                spots = (Spot(which=x, generation=0),), (Spot(which=y, generation=0),)
                found.append(
                    Anchor(baseline=spots[0], candidate=spots[1], evidence="context", distance=apart)
                )
    return found


def _split(
    whole_side: Side,
    wholes: Sequence[int],
    used_wholes: set[int],
    part_side: Side,
    parts: Sequence[int],
    used_parts: set[int],
) -> list[Anchor]:
    """Wholes are anchored as the baseline; classes that are used up are added to the ``used`` sets."""
    found: list[Anchor] = []
    for which in wholes:
        if which in used_wholes or not whole_side.classes.high_entropy[which]:
            continue
        unused = [c for c in parts if c not in used_parts and part_side.classes.high_entropy[c]]
        anchor = compose(whole_side, which, part_side, unused)
        if anchor is not None:
            used_wholes.add(which)
            used_parts.update(spot.which for spot in anchor.candidate)
            found.append(anchor)
    return found
