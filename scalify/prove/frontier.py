"""Cut a region that was not proved where it is understood: what lies behind the cut is lowered anew.

In: a segment of either program, and what was found of them. Out: two segments of each. The candidate's values
on the cut are known to be the baseline's, read through a map; behind it they enter as such, and what the
normal form could not see before, that windows of two ranks lie side by side, or that two divisors are one
once they are summed, it can see then. The cut is a cut like any other: it cannot make a proof.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from scalify.ir.graph import Graph, Node, NodeId
from scalify.layout.views import View, same
from scalify.normalize.terms import TermId
from scalify.partition import Segment, made_of_nothing
from scalify.prove.classes import Classes
from scalify.prove.region import Goal, Region, RegionProof, RegionTerms, shown, terms_of

Segments = tuple[Segment, Segment]


def beyond(
    segments: Segments, stuck: tuple[Region, RegionProof], graphs: tuple[Graph, Graph]
) -> tuple[Segments, Segments] | None:
    """The segments up to where the candidate is known to be the baseline's, and from there on.

    None where the cut would be where the segments begin.
    """
    own, other = segments
    given = _apart(own, graphs[0])
    counterparts = _Known(*stuck, given).counterparts(_apart(other, graphs[1]))
    rest, frontier = _behind(other, counterparts.keys())
    if not frontier or not any(node.id in rest for node in other.nodes if node.id not in counterparts):
        return None
    met = frozenset(counterparts[value] for value in frontier)
    return _both(own, met), _both(other, frontier)


def _both(segment: Segment, frontier: frozenset[NodeId]) -> Segments:
    rest, reached = _behind(segment, frontier)
    before = _closure(segment, frontier, frozenset())
    entered = {*segment.entering, *frontier}
    used = {operand for node in segment.nodes if node.id in rest for operand in node.operands}
    return (
        Segment(
            nodes=tuple(node for node in segment.nodes if node.id in before),
            entering=tuple(value for value in segment.entering if value in before),
            leaving=tuple(node.id for node in segment.nodes if node.id in frontier),
        ),
        Segment(
            nodes=tuple(node for node in segment.nodes if node.id in rest),
            entering=tuple(sorted((entered & used) | (entered & {*segment.leaving}) | reached)),
            leaving=segment.leaving,
        ),
    )


def _behind(segment: Segment, known: Iterable[NodeId]) -> tuple[frozenset[NodeId], frozenset[NodeId]]:
    """What results need that is not known, back to what is; and what is known at which that ends."""
    stop = frozenset(known)
    reached = _closure(segment, segment.leaving, stop)
    return reached - stop, reached & stop


def _closure(segment: Segment, results: Iterable[NodeId], stop: frozenset[NodeId]) -> frozenset[NodeId]:
    nodes = {node.id: node for node in segment.nodes}
    left, seen = [*results], set[NodeId]()
    while left:
        value = left.pop()
        if value in seen:
            continue
        seen.add(value)
        if value not in stop and value in nodes:
            left.extend(nodes[value].operands)
    return frozenset(seen)


def _apart(segment: Segment, graph: Graph) -> tuple[Node, ...]:
    """The nodes at which a segment may be cut: what is computed of inputs and is no result."""
    left_out = made_of_nothing(graph) | {output.value for output in graph.outputs}
    return tuple(node for node in segment.nodes if node.id not in left_out)


class _Known:
    """What was found of the candidate's values."""

    def __init__(self, region: Region, proof: RegionProof, given: Iterable[Node]) -> None:
        self._lowered = _terms(region, proof)
        self._classes = Classes(self._lowered.terms, [*self._lowered.terms.numbers()])
        self._given: dict[TermId, list[NodeId]] = defaultdict(list)
        for node in given:
            if node.id in self._lowered.baseline.accesses:
                self._given[self._class(self._lowered.baseline.accesses[node.id].term)].append(node.id)
        self._views: dict[TermId, dict[tuple[TermId, View], None]] = defaultdict(dict)
        names = proof.saturation.names.views
        for derivation in proof.saturation.derivations:
            found = self._class(derivation.baseline), names[derivation.view]
            self._views[self._class(derivation.candidate)][found] = None

    def counterparts(self, nodes: Iterable[Node]) -> Mapping[NodeId, NodeId]:
        """The candidate's nodes that are known to be one of the baseline's, read through a map."""
        found = {node.id: self._counterpart(node.id) for node in nodes}
        return {value: target for value, target in found.items() if target is not None}

    def _counterpart(self, value: NodeId) -> NodeId | None:
        if value not in self._lowered.candidate.accesses:
            return None
        term = self._lowered.candidate.accesses[value].term
        own = self._class(term)
        views = [*self._views.get(own, ()), (own, same(self._lowered.terms[term].space))]
        for given, view in views:
            for target in self._given.get(given, ()):
                goal = Goal(baseline=target, candidate=value, choices=None)
                if shown(goal, self._lowered, view) is not None:
                    return target
        return None

    def _class(self, term: TermId) -> TermId:
        return self._classes.of(term)


def _terms(region: Region, proof: RegionProof) -> RegionTerms:
    """The proof's own terms, unless it was made for an equal region of other nodes."""
    known = proof.region_terms.candidate.accesses
    return proof.region_terms if all(n.id in known for n in region.candidate) else terms_of(region)
