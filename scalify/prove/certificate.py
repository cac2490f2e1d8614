"""A proof that can be checked without the engine that found it.

In: a chain of proved regions. Out: what of each distinct proof is needed for what it shows, in an order in
which premises come first, and where in the two programs each proof is used.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from scalify.ir.graph import NodeId
from scalify.layout.maps import IndexMap
from scalify.layout.views import View
from scalify.normalize.terms import TermId
from scalify.prove.chain import Chain
from scalify.prove.classes import Classes
from scalify.prove.engine import Derivation
from scalify.prove.region import Region, RegionProof, RegionTerms, Shown, goal_terms, needed, shown

RULES_VERSION = 2
"""Changes whenever a rule, a form or the meaning of a note does: other certificates are stale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionCertificate:
    """The proof of one region.

    ``views``, ``maps`` and ``ops`` are what the derivations name. ``shown`` is what was shown of each goal
    of the region, in order. Terms are by number: the checker makes them again from the region.
    """

    region: Region
    derivations: tuple[Derivation, ...]
    views: Mapping[str, View]
    maps: Mapping[str, IndexMap]
    ops: Mapping[str, str]
    shown: tuple[Shown | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A region of the two programs: its nodes, the values that enter them from other regions, the pairs of
    values that were asked for (with the name of the output that they are), and its distinct proof."""

    region: int
    baseline: tuple[NodeId, ...]
    candidate: tuple[NodeId, ...]
    baseline_entering: tuple[NodeId, ...]
    candidate_entering: tuple[NodeId, ...]
    goals: tuple[tuple[NodeId, NodeId, str | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Distinct proofs, and where they are used, in the order of the programs."""

    regions: tuple[RegionCertificate, ...]
    used: tuple[Use, ...]
    rules_version: int


def certificate_of(chain: Chain) -> Certificate:
    """The certificate of a chain in which every segment was proved."""
    regions: list[RegionCertificate] = []
    places: dict[int, int] = {}
    used: list[Use] = []
    for link in chain.links:
        if link.proof not in places:
            places[link.proof] = len(regions)
            regions.append(region_certificate(link.region, chain.proofs[link.proof]))
        used.append(_use(places[link.proof], link.region))
    return Certificate(regions=tuple(regions), used=tuple(used), rules_version=RULES_VERSION)


def _use(number: int, region: Region) -> Use:
    return Use(
        region=number,
        baseline=tuple(node.id for node in region.baseline),
        candidate=tuple(node.id for node in region.candidate),
        baseline_entering=tuple(value for value, _ in region.baseline_types),
        candidate_entering=tuple(value for value, _ in region.candidate_types),
        goals=tuple((goal.baseline, goal.candidate, goal.output) for goal in region.goals),
    )


def region_certificate(region: Region, proof: RegionProof) -> RegionCertificate:
    """What of a proof is needed for what it shows."""
    names = proof.saturation.names
    steps = _needed_steps(region, proof)
    views = {name: names.views[name] for step in steps for name in (step.view, *_views_of(step))}
    cells = [str(cell) for step in steps for cell in step.premises]
    return RegionCertificate(
        region=region,
        derivations=steps,
        views=views,
        maps={cell: names.maps[cell] for cell in cells if cell in names.maps},
        ops={cell: names.ops[cell] for cell in cells if cell in names.ops},
        shown=proof.shown,
    )


Fact = tuple[TermId, TermId, str]
"""A candidate's and a baseline's class, and the name of a view."""


def _needed_steps(region: Region, proof: RegionProof) -> tuple[Derivation, ...]:
    """Backwards from what was shown: the first derivation of every fact that is needed."""
    lowered = proof.region_terms
    pairs = [goal_terms(goal, lowered) for goal in region.goals]
    classes = Classes(lowered.terms, needed(lowered.terms, [term for pair in pairs for term in pair]))
    steps = proof.saturation.derivations
    first: dict[Fact, int] = {}
    for place, step in enumerate(steps):
        fact = classes.of(step.candidate), classes.of(step.baseline), step.view
        first.setdefault(fact, place)
    wanted = [
        place
        for number, answer in enumerate(proof.shown)
        if answer is not None
        for place in _shows(region, lowered, proof, (classes, first), number)
    ]
    kept: set[int] = set()
    while wanted:
        place = wanted.pop()
        if place in kept:
            continue
        kept.add(place)
        for own, other, view in premises_of(steps[place]):
            before = first.get((classes.of(own), classes.of(other), view))
            if before is not None and before < place:
                wanted.append(before)
    return tuple(steps[place] for place in sorted(kept))


def _shows(
    region: Region,
    lowered: RegionTerms,
    proof: RegionProof,
    facts: tuple[Classes, Mapping[Fact, int]],
    number: int,
) -> Iterator[int]:
    """The first derivation from which what was shown of a goal follows; none if it needs none."""
    classes, first = facts
    own, other = (classes.of(term) for term in goal_terms(region.goals[number], lowered))
    for (candidate, baseline, view), place in first.items():
        if (candidate, baseline) == (own, other):
            answer = shown(region.goals[number], lowered, proof.saturation.names.views[view])
            if answer == proof.shown[number]:
                yield place
                return


Triple = tuple[TermId, TermId, str]
Layout = Callable[[Sequence[object]], Iterator[tuple[object, object, object]]]


def premises_of(step: Derivation) -> tuple[Triple, ...]:
    """The views from which a derivation follows: candidate's term, baseline's term, view's name.

    Raises ValueError where the note is not one of its rule.
    """
    layout = LAYOUTS.get(step.rule)
    if layout is None:
        raise ValueError(f"there is no rule {step.rule!r}")
    cells = (step.candidate, step.baseline, *step.premises)
    return tuple((TermId(whole(own)), TermId(whole(other)), text(view)) for own, other, view in layout(cells))


def whole(cell: object) -> int:
    """A number in a note."""
    if type(cell) is not int:
        raise ValueError(f"{cell!r} stands where a number should")
    return cell


def text(cell: object) -> str:
    """A name in a note."""
    if not isinstance(cell, str):
        raise ValueError(f"{cell!r} stands where a name should")
    return cell


def _views_of(step: Derivation) -> tuple[str, ...]:
    return tuple(view for _, _, view in premises_of(step))


def _of_counterpart(cells: Sequence[object]) -> Iterator[tuple[object, object, object]]:
    _, _, _, _, _, *rest = cells
    for place in range(0, len(rest), 5):
        _, own, view, _, other = rest[place : place + 5]
        yield own, other, view


def _of_united(cells: Sequence[object]) -> Iterator[tuple[object, object, object]]:
    own, other, first, second = cells
    yield own, other, first
    yield own, other, second


def _of_completed(cells: Sequence[object]) -> Iterator[tuple[object, object, object]]:
    own, other, _, _, view, _, operand, beside = cells
    yield own, operand, view
    yield own, other, beside


def _at(own: int, other: int, view: int, count: int) -> Layout:
    def layout(cells: Sequence[object]) -> Iterator[tuple[object, object, object]]:
        if len(cells) != count:
            raise ValueError(f"{len(cells)} cells in a note of {count}")
        yield cells[own], cells[other], cells[view]

    return layout


LAYOUTS: Mapping[str, Layout] = {
    "counterpart": _of_counterpart,
    "completed": _of_completed,
    "united": _of_united,
    "scaled": _at(3, 1, 4, 7),
    "unscaled": _at(0, 4, 2, 7),
    "over-ranks": _at(4, 1, 5, 6),
    "owned": _at(4, 1, 5, 8),
    "piece": _at(5, 1, 6, 7),
    "assembled": _at(0, 6, 4, 7),
}
"""Where in a note (candidate, baseline, then its cells) the terms and views of its premises stand."""
