"""Regions in order: what one proves of the values that leave it, the next assumes of those that enter.

In: two graphs, cut into paired segments, and the relations of their inputs. Out: the regions that were
proved, in order, and the first that was not. A part that is not proved is joined with what follows before it
is given up, so a cut in an unlucky place costs time and nothing else.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from scalify.ir.graph import Graph, NodeId, TensorType
from scalify.layout.maps import Shape
from scalify.partition import Segment, joined
from scalify.prove.engine import Budget
from scalify.prove.region import Goal, Region, RegionProof, Shown, Types, prove_region
from scalify.relate.model import InputRelation, OutputRelation, Part, Relations

MOST_JOINED = 3
"""How many segments are joined at most; after that the answer is Unknown."""

Progress = Callable[[int, int], None]
"""Told how many segments are done, of how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A region as it was proved: the region, and which of the distinct proofs is its own."""

    region: Region
    proof: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """All that was found: what was shown of outputs, by the candidate's names, and whether all segments were
    proved. ``stuck`` is the first region without a proof, with what was found of it."""

    links: tuple[Link, ...]
    proofs: tuple[RegionProof, ...]
    outputs: Mapping[str, str]
    is_complete: bool
    stuck: tuple[Region, RegionProof] | None


@dataclass
class _State:
    """What is known so far of the candidate's values, and of its outputs."""

    baseline: Graph
    candidate: Graph
    outputs: tuple[OutputRelation, ...]
    budget: Budget
    memo: bool
    relations: dict[NodeId, InputRelation]
    shapes: dict[NodeId, Shape]
    baseline_types: dict[NodeId, TensorType]
    candidate_types: dict[NodeId, TensorType]
    links: list[Link] = field(default_factory=list)
    proofs: list[RegionProof] = field(default_factory=list)
    known: dict[object, int] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)


def prove_chain(
    baseline: Graph,
    candidate: Graph,
    segments: tuple[Sequence[Segment], Sequence[Segment]],
    relations: Relations,
    budget: Budget,
    *,
    memo: bool,
    progress: Progress | None = None,
) -> Chain:
    """Prove segment after segment."""
    state = _State(
        baseline=baseline,
        candidate=candidate,
        outputs=relations.outputs,
        budget=budget,
        memo=memo,
        relations={relation.candidate: relation for relation in relations.inputs},
        shapes={node.id: (baseline.mesh.size, *node.type.shape) for node in baseline.nodes},
        baseline_types={node.id: node.type for node in baseline.nodes},
        candidate_types={node.id: node.type for node in candidate.nodes},
    )
    own, other = [*segments[0]], [*segments[1]]
    stuck: tuple[Region, RegionProof] | None = None
    place = 0
    while place < len(own):
        stuck, after = _advance(state, own, other, place)
        if after == place:
            break
        place = after
        if progress is not None:
            progress(place, len(own))
    return Chain(
        links=tuple(state.links),
        proofs=tuple(state.proofs),
        outputs=dict(state.shown),
        is_complete=place == len(own),
        stuck=stuck,
    )


def _advance(
    state: _State, own: Sequence[Segment], other: Sequence[Segment], place: int
) -> tuple[tuple[Region, RegionProof] | None, int]:
    """Prove the segment at ``place``, joined with as many of the next as needed; the place after them."""
    first, second = own[place], other[place]
    failed: tuple[Region, RegionProof] | None = None
    last = min(len(own), place + MOST_JOINED)
    for stop in range(place + 1, last + 1):
        if stop > place + 1:
            later = _needed_after(own, stop, (o.value for o in state.baseline.outputs))
            first = joined(first, own[stop - 1], later)
            later = _needed_after(other, stop, (o.value for o in state.candidate.outputs))
            second = joined(second, other[stop - 1], later)
        if _is_torn(state, first, second):
            continue
        region = _region(state, first, second)
        number, proof = _proof(state, region)
        if _is_enough(region, proof):
            _accept(state, region, number, proof)
            return None, stop
        failed = (region, proof)
    return failed, place


def _needed_after(segments: Sequence[Segment], stop: int, outputs: Iterable[NodeId]) -> frozenset[NodeId]:
    return frozenset(value for segment in segments[stop:] for value in segment.entering) | frozenset(outputs)


def _is_torn(state: _State, own: Segment, other: Segment) -> bool:
    """Whether an output stands in one segment and its counterpart in a later one."""
    results = {output.name: output.value for output in state.candidate.outputs}
    wanted = {output.name: output.value for output in state.baseline.outputs}
    return any(
        (results[relation.candidate] in other.leaving) != (wanted[relation.baseline] in own.leaving)
        for relation in state.outputs
    )


def _region(state: _State, own: Segment, other: Segment) -> Region:
    """Two segments with what is known of the values that enter."""
    entering = dict.fromkeys(other.entering)
    entering.update(dict.fromkeys(node.id for node in other.nodes if node.op == "input"))
    relations = tuple(state.relations[value] for value in entering if value in state.relations)
    needed = dict.fromkeys(own.entering)
    needed.update(dict.fromkeys(node.id for node in own.nodes if node.op == "input"))
    needed.update(dict.fromkeys(part.baseline for relation in relations for part in relation.parts))
    return Region(
        baseline=own.nodes,
        candidate=other.nodes,
        baseline_ranks=state.baseline.mesh.size,
        candidate_ranks=state.candidate.mesh.size,
        entering=tuple((value, state.shapes[value]) for value in needed),
        relations=relations,
        goals=_goals(state, own, other),
        baseline_types=_foreign_types(state.baseline_types, own),
        candidate_types=_foreign_types(state.candidate_types, other),
    )


def _foreign_types(types: Mapping[NodeId, TensorType], segment: Segment) -> Types:
    """The types of what enters: what an op means may depend on the type of its operands."""
    return tuple((value, types[value]) for value in segment.entering)


def _goals(state: _State, own: Segment, other: Segment) -> tuple[Goal, ...]:
    """Outputs that both segments compute, and every pair of values that go on to later segments."""
    results = {output.name: output.value for output in state.candidate.outputs}
    wanted = {output.name: output.value for output in state.baseline.outputs}
    here = frozenset(other.leaving), frozenset(own.leaving)
    goals: list[Goal] = []
    for relation in state.outputs:
        value, target = results[relation.candidate], wanted[relation.baseline]
        if value in here[0] and target in here[1]:
            goals.append(
                Goal(baseline=target, candidate=value, choices=relation.choices, output=relation.candidate)
            )
    decided = {goal.candidate for goal in goals}
    for value in other.leaving:
        if value not in decided:
            goals.extend(Goal(baseline=target, candidate=value, choices=None) for target in own.leaving)
    return tuple(goals)


def _proof(state: _State, region: Region) -> tuple[int, RegionProof]:
    """The proof of a region, made anew unless an equal region was proved before."""
    key = region.key() if state.memo else None
    number = state.known.get(key) if key is not None else None
    if number is None:
        number = len(state.proofs)
        state.proofs.append(prove_region(region, state.budget))
        if key is not None:
            state.known[key] = number
    return number, state.proofs[number]


def _is_enough(region: Region, proof: RegionProof) -> bool:
    """Whether every output was shown, and every other value that leaves in one way at least."""
    reached = {goal.candidate for goal, found in zip(region.goals, proof.shown, strict=True) if found}
    return all(
        found is not None or (goal.choices is None and goal.candidate in reached)
        for goal, found in zip(region.goals, proof.shown, strict=True)
    )


def _accept(state: _State, region: Region, number: int, proof: RegionProof) -> None:
    """What was shown becomes what is known."""
    state.links.append(Link(region=region, proof=number))
    for goal, found in zip(region.goals, proof.shown, strict=True):
        if found is None:
            continue
        if goal.candidate not in state.relations:
            state.relations[goal.candidate] = _between(goal, found)
        if goal.output is not None:
            state.shown[goal.output] = found.layout


def _between(goal: Goal, found: Shown) -> InputRelation:
    """What a region proved, as what the next one assumes."""
    part = Part(baseline=goal.baseline, index=found.index)
    return InputRelation(candidate=goal.candidate, parts=(part,), text=found.layout)
