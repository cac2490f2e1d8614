"""Why one operator is where it is: what is known of its values, and how it came into its region.

In: two profiles, their matching, and an operator of either side. Out: facts, taken from the alignment that
``match`` itself makes; names and lines are added by whoever shows them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from magneton.match.frontier import edges
from magneton.match.grounds import Ground, ground_of
from magneton.match.matching import align_phase
from magneton.match.model import Leftover, Matching, Region, SideName, Unpaired, ValuePair
from magneton.match.reach import SINK, Why
from magneton.match.recognition import Recognition, View, recognise, view_from
from magneton.match.regions import value_pairs
from magneton.match.sinks import find_sinks
from magneton.profile.model import OpId, Profile, ValueId
from magneton.workload import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadValue:
    """An input, and the pair that speaks of it."""

    value: ValueId
    pair: ValuePair | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenValue:
    """An output: whether it is recognised, and with what it is paired."""

    recognition: Recognition
    pair: ValuePair | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedRegion:
    """``number`` indexes ``Matching.regions``; ``times`` equal ones form its group."""

    number: int
    times: int
    ground: Ground
    shared: bool
    baseline: tuple[OpId, ...]
    candidate: tuple[OpId, ...]
    produces: tuple[ValuePair, ...]
    consumes: tuple[ValuePair, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkAccount:
    """Operators that work on each other's results, none of which reaches a value of the other side.

    ``counterparts`` are the sinks of the other side that read the same paired values.
    """

    operators: tuple[OpId, ...]
    consumes: tuple[ValuePair, ...]
    syncs: bool
    mutates: bool
    last: bool  # holds the last operator of the phase: the step's result
    counterparts: tuple[tuple[OpId, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Exactly one of ``region`` and ``leftover`` is set; ``sink`` where no result reaches an anchor."""

    side: SideName
    op_id: OpId
    phase: Phase
    reads: tuple[ReadValue, ...]
    writes: tuple[WrittenValue, ...]
    why: Why
    reaches: tuple[ValuePair, ...]  # what its results become first, within its region
    serves: int  # regions that read the results of the shared operators among which it is
    ready: bool  # the other side computes nothing here: it has the values before the phase
    sink: SinkAccount | None
    region: ExplainedRegion | None
    leftover: Unpaired | None


def explain_operator(
    baseline: Profile, candidate: Profile, matching: Matching, side: SideName, op_id: OpId
) -> Explanation:
    """Why ``op_id`` of ``side`` is where ``matching``, made of these profiles, puts it."""
    phase = (baseline if side == "baseline" else candidate).operators[op_id].phase
    alignment = align_phase(baseline, candidate, phase)
    view, pairs = view_from(alignment, side), value_pairs(alignment)
    wiring = view.ours.side.wiring
    at = next(k for k, op in enumerate(wiring.operators) if op.op_id == op_id)
    assigned = view.ours.reach.region[at]
    recognised = [recognise(view, ValueId(value)) for value in wiring.outputs[at]]
    pair_of = view.ours.marks.anchor
    return Explanation(
        side=side,
        op_id=op_id,
        phase=phase,
        reads=tuple(
            ReadValue(value=ValueId(v), pair=pairs[pair_of[v]] if v in pair_of else None)
            for v in wiring.inputs[at]
        ),
        writes=tuple(
            WrittenValue(recognition=r, pair=None if r.pair is None else pairs[r.pair]) for r in recognised
        ),
        why=view.ours.reach.why[at],
        reaches=tuple(pairs[k] for k in _reached(view, alignment.bounds, at)) if assigned >= 0 else (),
        serves=len({reader for region, reader in edges(view.ours) if region == assigned < SINK}),
        ready=assigned >= 0 and assigned not in view.theirs.reach.region,
        sink=_sink(view, pairs, at) if assigned == SINK else None,
        region=_region(matching, side, op_id),
        leftover=_leftover(matching, side, op_id),
    )


def _reached(view: View, bounds: int, at: int) -> tuple[int, ...]:
    """The anchors that the operator's results become, going through operators of its own region only."""
    wiring, marks, region = view.ours.side.wiring, view.ours.marks, view.ours.reach.region
    reached: set[int] = set()
    seen, waiting = {at}, [at]
    while waiting:
        current = waiting.pop()
        made = {marks.anchor[v] for v in wiring.outputs[current] if v in marks.roots and v in marks.anchor}
        made = {anchor for anchor in made if anchor < bounds}
        reached |= made
        if made:
            continue
        readers = {c for v in wiring.outputs[current] for c in wiring.consumers.get(v, ())}
        following = [c for c in readers if region[c] == region[at] and c not in seen]
        seen.update(following)
        waiting += following
    own = {marks.anchor[v] for v in wiring.outputs[at] if v in marks.anchor}
    return tuple(sorted(own if view.ours.reach.why[at] == "remakes" else reached or own))


def _sink(view: View, pairs: Sequence[ValuePair], at: int) -> SinkAccount:
    wiring = view.ours.side.wiring
    sink = next(found for found in find_sinks(view.ours) if at in found.operators)
    alike = [other for other in find_sinks(view.theirs) if other.consumes == sink.consumes]
    theirs = view.theirs.side.wiring.operators
    return SinkAccount(
        operators=tuple(wiring.operators[k].op_id for k in sink.operators),
        consumes=tuple(pairs[k] for k in sorted(sink.consumes)),
        syncs=sink.syncs,
        mutates=any(wiring.operators[k].mutated for k in sink.operators),
        last=sink.last,
        counterparts=tuple(tuple(theirs[k].op_id for k in other.operators) for other in alike),
    )


def _region(matching: Matching, side: SideName, op_id: OpId) -> ExplainedRegion | None:
    for number, region in enumerate(matching.regions):
        if op_id in _held(region, side):
            return ExplainedRegion(
                number=number,
                times=next(len(group.regions) for group in matching.groups if number in group.regions),
                ground=ground_of(region, matching.pairs),
                shared=region.shared,
                baseline=region.baseline,
                candidate=region.candidate,
                produces=tuple(matching.pairs[k] for k in region.produces),
                consumes=tuple(matching.pairs[k] for k in region.consumes),
            )
    return None


def _held(region: Region, side: SideName) -> tuple[OpId, ...]:
    return region.baseline if side == "baseline" else region.candidate


def _leftover(matching: Matching, side: SideName, op_id: OpId) -> Unpaired | None:
    only: tuple[Leftover, ...] = matching.only_baseline if side == "baseline" else matching.only_candidate
    return next((leftover.reason for leftover in only if leftover.op_id == op_id), None)
