"""Regions of one phase: what each pair of regions holds, produces and consumes; and what is left over."""

from collections.abc import Sequence
from dataclasses import dataclass

from magneton.match.anchor import Anchor, Side, Spot, is_source
from magneton.match.frontier import Laid, both_edges, consumed
from magneton.match.leftovers import explain
from magneton.match.model import Leftover, Region, ValuePair
from magneton.match.phases import Alignment
from magneton.match.quotient import cycles
from magneton.match.shared import Counterparts, pair_shared
from magneton.match.sinks import find_sinks, pair_sinks
from magneton.profile.model import OpId, ValueId
from magneton.workload import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseMatch:
    """``produces`` and ``consumes`` of the regions index ``pairs`` of this phase."""

    pairs: tuple[ValuePair, ...]
    regions: tuple[Region, ...]
    only_baseline: tuple[Leftover, ...]
    only_candidate: tuple[Leftover, ...]


def lay_regions(phase: Phase, alignment: Alignment) -> PhaseMatch:
    baseline, candidate, groups = alignment.baseline, alignment.candidate, alignment.groups
    held_x, held_y = _held(baseline), _held(candidate)
    read_x, read_y = consumed(baseline, groups), consumed(candidate, groups)
    made = _made(alignment)
    sinks_x, sinks_y = find_sinks(baseline), find_sinks(candidate)

    computed = [((group,), (group,)) for group in sorted(held_x.keys() & held_y.keys()) if group >= 0]
    shared = _shared_pairs(alignment)
    pairs = list(value_pairs(alignment))
    regions = [
        _region(
            (phase, xs[0] < 0),
            (baseline, sorted(at for x in xs for at in held_x[x])),
            (candidate, sorted(at for y in ys for at in held_y[y])),
            made.get(xs[0], ()),
            set[int]().union(*(read_x[x] for x in xs), *(read_y[y] for y in ys)),
        )
        for xs, ys in (*computed, *shared)
    ]
    for x, y in pair_sinks((baseline, candidate), sinks_x, sinks_y):
        output = _output_pair(baseline, x.operators, candidate, y.operators) if x.last and y.last else None
        produces = () if output is None else (len(pairs),)
        pairs += [] if output is None else [output]
        regions.append(
            _region(
                (phase, False),
                (baseline, x.operators),
                (candidate, y.operators),
                produces,
                x.consumes | y.consumes,
            )
        )
    regions.sort(key=lambda region: (region.baseline[0], region.candidate[0]))
    return PhaseMatch(
        pairs=tuple(pairs),
        regions=tuple(regions),
        only_baseline=explain(
            baseline, _positions(baseline, regions, "baseline"), sinks_x, alignment.ambiguous_baseline
        ),
        only_candidate=explain(
            candidate, _positions(candidate, regions, "candidate"), sinks_y, alignment.ambiguous_candidate
        ),
    )


def value_pairs(alignment: Alignment) -> tuple[ValuePair, ...]:
    """What the anchors say of values; in the order of the anchors."""
    return tuple(map(_value_pair_of(alignment.baseline.side, alignment.candidate.side), alignment.anchors))


def _held(laid: Laid) -> dict[int, list[int]]:
    held: dict[int, list[int]] = {}
    for at, region in enumerate(laid.reach.region):
        held.setdefault(region, []).append(at)
    return held


def _made(alignment: Alignment) -> dict[int, tuple[int, ...]]:
    """The anchors that each group computes on at least one side."""
    made: dict[int, tuple[int, ...]] = {}
    for index, anchor in enumerate(alignment.anchors):
        existed = all(is_source(alignment.baseline.side, spot) for spot in anchor.baseline) and all(
            is_source(alignment.candidate.side, spot) for spot in anchor.candidate
        )
        if not existed:
            group = alignment.groups.find(index)
            made[group] = (*made.get(group, ()), index)
    return made


def _shared_pairs(alignment: Alignment) -> tuple[Counterparts, ...]:
    """None at all where taking shared regions for one would close a circle."""
    found = pair_shared(alignment.baseline, alignment.candidate)
    links = both_edges(alignment.baseline, alignment.candidate)
    lowest = min(alignment.baseline.reach.region, default=-1)
    joined = {x: xs[0] for xs, _ in found for x in xs} | {y + lowest: xs[0] for xs, ys in found for y in ys}
    merged = {(joined.get(x, x), joined.get(y, y)) for x, y in links}
    return () if cycles(merged) else found


def _value_pair_of(baseline: Side, candidate: Side):
    def values(side: Side, spots: Sequence[Spot]) -> tuple[ValueId, ...]:
        return tuple(ValueId(side.classes.roots[spot.which][spot.generation][0]) for spot in spots)

    def value_pair(anchor: Anchor) -> ValuePair:
        sources = all(is_source(baseline, s) for s in anchor.baseline)
        first = values(baseline, anchor.baseline)[0]
        role = baseline.wiring.profile.values[first].role
        named = sources and anchor.evidence == "value" and role in ("input", "parameter")
        return ValuePair(
            baseline=values(baseline, anchor.baseline),
            candidate=values(candidate, anchor.candidate),
            evidence=("input" if role == "input" else "parameter") if named else anchor.evidence,
            distance=anchor.distance,
        )

    return value_pair


def _region(
    kind: tuple[Phase, bool],
    baseline: tuple[Laid, Sequence[int]],
    candidate: tuple[Laid, Sequence[int]],
    produces: Sequence[int],
    consumes: set[int] | frozenset[int],
) -> Region:
    return Region(
        phase=kind[0],
        baseline=_ids(*baseline),
        candidate=_ids(*candidate),
        produces=tuple(produces),
        consumes=tuple(sorted(consumes)),
        shared=kind[1],
    )


def _ids(laid: Laid, positions: Sequence[int]) -> tuple[OpId, ...]:
    return tuple(laid.side.wiring.operators[at].op_id for at in positions)


def _output_pair(
    baseline: Laid, at_x: Sequence[int], candidate: Laid, at_y: Sequence[int]
) -> ValuePair | None:
    """The last result that nothing reads, of each side: the same output by role, equal or not."""
    last_x, last_y = _unread(baseline, at_x), _unread(candidate, at_y)
    if last_x is None or last_y is None:
        return None
    return ValuePair(
        baseline=(ValueId(last_x),), candidate=(ValueId(last_y),), evidence="output", distance=0.0
    )


def _unread(laid: Laid, positions: Sequence[int]) -> int | None:
    wiring = laid.side.wiring
    unread = (v for at in reversed(positions) for v in wiring.outputs[at] if v not in wiring.consumers)
    return next(unread, None)


def _positions(laid: Laid, regions: Sequence[Region], side: str) -> set[int]:
    paired = {
        op for region in regions for op in (region.baseline if side == "baseline" else region.candidate)
    }
    return {at for at, op in enumerate(laid.side.wiring.operators) if op.op_id in paired}
