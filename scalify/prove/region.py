"""One region of both programs: its terms, its goals, and what an engine finds of them.

In: nodes of both sides, what the values that enter are (for the candidate: in terms of the baseline's), and
the pairs of values that leave, each with the layouts in which the candidate's may make up the baseline's.
Out: for each pair the layout that was proved, and the derivations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scalify.ir.graph import Node, NodeId
from scalify.layout.maps import IndexMap, Shape, then
from scalify.layout.views import View, through
from scalify.normalize.lower import Lowered, lower
from scalify.normalize.terms import Access, TermId, Terms
from scalify.prove.engine import Budget, Saturation, saturate
from scalify.relate.model import InputRelation, Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Two values that should correspond, through one of the ``choices`` (name and map)."""

    baseline: NodeId
    candidate: NodeId
    choices: tuple[tuple[str, IndexMap], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A part of both programs that can be proved by itself.

    ``entering`` are the baseline's values that come from outside, with their shapes (ranks first);
    ``relations`` say what the candidate's entering values are.
    """

    baseline: tuple[Node, ...]
    candidate: tuple[Node, ...]
    baseline_ranks: int
    candidate_ranks: int
    entering: tuple[tuple[NodeId, Shape], ...]
    relations: tuple[InputRelation, ...]
    goals: tuple[Goal, ...]


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
    """What was found: per goal the chosen layout (None: unproved), and everything that was derived."""

    layouts: tuple[str | None, ...]
    region_terms: RegionTerms
    saturation: Saturation


def terms_of(region: Region) -> RegionTerms:
    """Lower both sides. The order of terms is a function of the region alone."""
    terms = Terms()
    leaves = {
        node: terms.leaf(f"in{position}", shape) for position, (node, shape) in enumerate(region.entering)
    }
    baseline = lower(region.baseline, region.baseline_ranks, leaves, terms)
    count = len(terms)
    entering = {relation.candidate: entering_value(terms, leaves, relation) for relation in region.relations}
    candidate = lower(region.candidate, region.candidate_ranks, entering, terms)
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
    pairs: list[tuple[TermId, TermId]] = []
    for goal in region.goals:
        pairs.append(
            (lowered.candidate.accesses[goal.candidate].term, lowered.baseline.accesses[goal.baseline].term)
        )

    def accepts(number: int, view: View) -> str | None:
        return layout_shown(region.goals[number], lowered, view)

    numbers = _needed(lowered.terms, [term for pair in pairs for term in pair])
    saturation = saturate(lowered.terms, numbers, lowered.baseline_numbers, pairs, accepts, budget)
    layouts = tuple(saturation.reached.get(number) for number in range(len(region.goals)))
    return RegionProof(layouts=layouts, region_terms=lowered, saturation=saturation)


def layout_shown(goal: Goal, lowered: RegionTerms, view: View) -> str | None:
    """The name of the choice that a view of the candidate's term proves, if it proves one."""
    if not view.is_plain:
        return None
    own = through(view, lowered.candidate.accesses[goal.candidate].index)
    given = lowered.baseline.accesses[goal.baseline].index
    for name, index in goal.choices:
        wanted = then(index, given)
        if own is not None and wanted is not None and own.is_plain and own.index == wanted:
            return name
    return None


def _needed(terms: Terms, goals: Sequence[TermId]) -> list[TermId]:
    """The terms on which goals depend, in order."""
    seen: set[TermId] = set()
    left = list(goals)
    while left:
        number = left.pop()
        if number not in seen:
            seen.add(number)
            left.extend(access.term for access in terms[number].operands)
    return sorted(seen)
