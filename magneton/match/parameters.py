"""Parameters that a region reads whole on one side and in parts on the other (fused QKV weights)."""

from collections.abc import Sequence

from magneton.match.anchor import Anchor, Side, Spot
from magneton.match.composites import find_parts
from magneton.match.frontier import Laid


def split_sources(baseline: Laid, candidate: Laid) -> tuple[Anchor, ...]:
    """Composite anchors between unpaired sources that one region consumes."""
    unknown_x, unknown_y = _unknown(baseline), _unknown(candidate)
    found: list[Anchor] = []
    used_x: set[int] = set()
    used_y: set[int] = set()
    for region in sorted(unknown_x.keys() & unknown_y.keys()):
        if region >= 0:
            found += _split(
                baseline.side, unknown_x[region], used_x, candidate.side, unknown_y[region], used_y
            )
            turned = _split(
                candidate.side, unknown_y[region], used_y, baseline.side, unknown_x[region], used_x
            )
            found += [anchor.turned() for anchor in turned]
    return tuple(found)


def _unknown(laid: Laid) -> dict[int, list[int]]:
    """Classes of unpaired sources that could be recognised, by the region that reads them."""
    wiring, classes = laid.side.wiring, laid.side.classes
    found: dict[int, dict[int, None]] = {}
    for read, region in zip(wiring.inputs, laid.reach.region, strict=True):
        for value in read:
            unpaired = value not in wiring.producer and value not in laid.marks.anchor
            if unpaired and classes.high_entropy[classes.of[value]]:
                found.setdefault(region, {})[classes.of[value]] = None
    return {region: list(which) for region, which in found.items()}


def _split(
    whole_side: Side,
    wholes: Sequence[int],
    used_wholes: set[int],
    part_side: Side,
    parts: Sequence[int],
    used_parts: set[int],
) -> list[Anchor]:
    """Wholes are anchored as the baseline; classes that are used up are added to the ``used`` sets."""
    sketches_x, sketches_y = whole_side.wiring.profile.sketches, part_side.wiring.profile.sketches
    found: list[Anchor] = []
    for which in wholes:
        whole = whole_side.classes.members[which][0]
        firsts = {part_side.classes.members[c][0]: c for c in parts if c not in used_parts}
        smaller = [v for v in firsts if sketches_y.count[v] < sketches_x.count[whole]]
        hit = find_parts(sketches_x, whole, sketches_y, smaller) if which not in used_wholes else None
        if hit is None:
            continue
        used_wholes.add(which)
        used_parts.update(firsts[v] for v in hit[0])
        found.append(
            Anchor(
                baseline=(Spot(which=which, generation=0),),
                candidate=tuple(Spot(which=firsts[v], generation=0) for v in hit[0]),
                evidence="composite",
                distance=hit[1],
            )
        )
    return found
