"""One region of both programs: its terms, its goals, and what an engine finds of them.

In: nodes of both sides, what the values that enter are (for the candidate: in terms of the baseline's), and
pairs of values that leave. Out: for each pair the layout that was proved, and the derivations.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scalify.ir.graph import Attr, Node, NodeId, TensorType
from scalify.layout.free import going_on
from scalify.layout.maps import IndexMap, Shape, solve, then
from scalify.layout.views import View, same, through
from scalify.normalize.lower import Lowered, lower
from scalify.normalize.terms import Access, TermId, Terms
from scalify.prove.engine import Budget, Saturation, StopReason, saturate
from scalify.prove.naming import Names
from scalify.relate.model import InputRelation, Part

Choices = tuple[tuple[str, IndexMap], ...]
Types = tuple[tuple[NodeId, TensorType], ...]

ANY = "in some layout"
"""What is shown of a value between regions: it is the baseline's in a layout that the index map says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Two values that should correspond: through one of the ``choices`` (name and map), or through any map.

    ``output`` is the candidate's name of the result that the two are, if they are one.
    """

    baseline: NodeId
    candidate: NodeId
    choices: Choices | None
    output: str | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """What was proved of a goal: the candidate's value reads the baseline's through ``index``."""

    layout: str
    index: IndexMap


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A part of both programs that can be proved by itself.

    ``entering`` are the baseline's values that come from outside, with their shapes (ranks first);
    ``relations`` say what the candidate's entering values are. A candidate's value that has several goals
    needs to reach one of them. The types are those of operands that are not among the region's own nodes.
    """

    baseline: tuple[Node, ...]
    candidate: tuple[Node, ...]
    baseline_ranks: int
    candidate_ranks: int
    entering: tuple[tuple[NodeId, Shape], ...]
    relations: tuple[InputRelation, ...]
    goals: tuple[Goal, ...]
    baseline_types: Types = ()
    candidate_types: Types = ()

    def key(self) -> object:
        """Equal keys, equal regions: all that matters to a proof, names and source lines left out."""
        own = _Numbers(node for node, _ in self.entering)
        other = _Numbers(relation.candidate for relation in self.relations)
        relations = tuple(
            (other[r.candidate], r.axis, tuple((own[part.baseline], part.index) for part in r.parts))
            for r in self.relations
        )
        nodes = (_structure(self.baseline, own), _structure(self.candidate, other))
        goals = tuple((own[g.baseline], other[g.candidate], g.choices) for g in self.goals)
        shapes = tuple(shape for _, shape in self.entering)
        types = (
            tuple((own[node], declared) for node, declared in self.baseline_types),
            tuple((other[node], declared) for node, declared in self.candidate_types),
        )
        return self.baseline_ranks, self.candidate_ranks, shapes, relations, nodes, goals, types


class _Numbers(dict[NodeId, int]):
    """Ids by the order in which they are met."""

    def __init__(self, first: Iterable[NodeId]) -> None:
        super().__init__()
        for node in first:
            _ = self[node]

    def __missing__(self, node: NodeId) -> int:
        self[node] = len(self)
        return self[node]


def _structure(nodes: Sequence[Node], numbers: _Numbers) -> tuple[object, ...]:
    return tuple(
        (
            node.op,
            tuple(numbers[operand] for operand in node.operands),
            _attributes(node),
            node.type,
            numbers[node.id],
        )
        for node in nodes
    )


def _attributes(node: Node) -> tuple[tuple[str, Attr], ...]:
    if node.op == "input":
        return ()
    return tuple(node.attrs.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionTerms:
    """A region in terms: the first ``baseline_terms`` of them are the baseline's."""

    terms: Terms
    baseline: Lowered
    candidate: Lowered
    baseline_terms: int

    @property
    def baseline_numbers(self) -> frozenset[TermId]:
        """The terms that the baseline computes."""
        return frozenset(TermId(number) for number in range(self.baseline_terms))


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionProof:
    """What was found: per goal what was shown (None: nothing), and everything that was derived."""

    shown: tuple[Shown | None, ...]
    region_terms: RegionTerms
    saturation: Saturation


def terms_of(region: Region) -> RegionTerms:
    """Lower both sides. The order of terms is a function of the region alone."""
    terms = Terms()
    leaves = {
        node: terms.leaf(f"in{position}", shape) for position, (node, shape) in enumerate(region.entering)
    }
    baseline = lower(region.baseline, region.baseline_ranks, leaves, terms, region.baseline_types)
    count = len(terms)
    entering = {relation.candidate: entering_value(terms, leaves, relation) for relation in region.relations}
    candidate = lower(region.candidate, region.candidate_ranks, entering, terms, region.candidate_types)
    return RegionTerms(terms=terms, baseline=baseline, candidate=candidate, baseline_terms=count)


def entering_value(terms: Terms, leaves: Mapping[NodeId, Access], relation: InputRelation) -> Access:
    """A candidate's entering value in terms of the baseline's leaves."""
    parts = [_part(terms, leaves, part) for part in relation.parts]
    return parts[0] if len(parts) == 1 else terms.concatenation(relation.axis + 1, parts)


def _part(terms: Terms, leaves: Mapping[NodeId, Access], part: Part) -> Access:
    access = terms.read(part.index, leaves[part.baseline])
    if access is None:
        raise AssertionError("a relation reads its input as it stands")
    return access


def prove_region(region: Region, budget: Budget) -> RegionProof:
    """Run an engine on the region."""
    lowered = terms_of(region)
    pairs = [goal_terms(goal, lowered) for goal in region.goals]
    found: dict[int, Shown] = {}
    wanted = {_wanted(goal) for goal in region.goals}

    def reach(number: int, view: View) -> bool:
        answer = found.get(number) or shown(region.goals[number], lowered, view)
        if answer is not None:
            found[number] = answer
            wanted.discard(_wanted(region.goals[number]))
        return not wanted

    for number, (candidate, baseline) in enumerate(pairs):
        # What both programs compute in the same way is one term, and needs no engine.
        if candidate == baseline:
            reach(number, same(lowered.terms[baseline].space))
    if not wanted:
        saturation = Saturation(derivations=(), stop_reason=StopReason.REACHED, names=Names())
    else:
        numbers = needed(lowered.terms, [term for pair in pairs for term in pair])
        saturation = saturate(lowered.terms, numbers, lowered.baseline_numbers, pairs, reach, budget)
    return RegionProof(
        shown=tuple(found.get(number) for number in range(len(region.goals))),
        region_terms=lowered,
        saturation=saturation,
    )


def _wanted(goal: Goal) -> tuple[NodeId, str | None]:
    """What counts as reached: every output by itself, other values in one way."""
    return goal.candidate, goal.output


def goal_terms(goal: Goal, lowered: RegionTerms) -> tuple[TermId, TermId]:
    """The candidate's and the baseline's term of a goal."""
    return (
        lowered.candidate.accesses[goal.candidate].term,
        lowered.baseline.accesses[goal.baseline].term,
    )


def shown(goal: Goal, lowered: RegionTerms, view: View) -> Shown | None:
    """What a view of the candidate's term by the baseline's shows of the goal, if it shows it."""
    own = through(view, lowered.candidate.accesses[goal.candidate].index)
    if own is None or not own.is_plain:
        return None
    given = lowered.baseline.accesses[goal.baseline].index
    if goal.choices is None:
        index = solve([own.index], [given], going_on(own.index.domain, given.domain))
        return None if index is None else Shown(ANY, index)
    for name, index in goal.choices:
        if then(index, given) == own.index:
            return Shown(name, index)
    return None


def needed(terms: Terms, goals: Sequence[TermId]) -> list[TermId]:
    """The terms on which goals depend, in order."""
    seen: set[TermId] = set()
    left = list(goals)
    while left:
        number = left.pop()
        if number not in seen:
            seen.add(number)
            left.extend(access.term for access in terms[number].operands)
            left.extend(terms.equal.get(number, ()))
    return sorted(seen)
