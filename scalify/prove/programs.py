"""Regions made of two programs' nodes, in order: what is known of a candidate's value, and from where.

In: graphs, the relations of their inputs, and which nodes each region has. Out: the regions, in which only
what was related or shown before enters. Whatever does not fit is rejected.
"""

from collections.abc import Iterable, Sequence

from scalify.ir.graph import Graph, Node, NodeId
from scalify.prove.certificate import Use
from scalify.prove.established import Rejected
from scalify.prove.region import Goal, Region, Shown, Types
from scalify.relate.model import InputRelation, Part, Relations


class Programs:
    """Two programs, and what is known so far of the candidate's values and outputs."""

    def __init__(self, baseline: Graph, candidate: Graph, relations: Relations) -> None:
        self._graphs = baseline, candidate
        self._nodes = baseline.by_id(), candidate.by_id()
        self._outputs = {relation.candidate: relation for relation in relations.outputs}
        self._results = {output.name: output.value for output in candidate.outputs}
        self._wanted = {output.name: output.value for output in baseline.outputs}
        self._known = {relation.candidate: relation for relation in relations.inputs}
        self._shown: set[str] = set()

    def region(self, use: Use) -> Region:
        """The region of these nodes, with what is known of the values that enter."""
        own, other = (self._chosen(side, ids) for side, ids in enumerate((use.baseline, use.candidate)))
        entering = dict.fromkeys((*use.candidate_entering, *_inputs(other)))
        strange = [value for value in use.candidate_entering if value not in self._known]
        if strange:
            raise Rejected(f"nothing is known of {strange[0]}, which enters a region")
        relations = tuple(self._known[value] for value in entering if value in self._known)
        parts = (part.baseline for relation in relations for part in relation.parts)
        needed = dict.fromkeys((*use.baseline_entering, *_inputs(own), *parts))
        _must_be_closed(own, use.baseline_entering)
        _must_be_closed(other, use.candidate_entering)
        ranks = self._graphs[0].mesh.size
        return Region(
            baseline=own,
            candidate=other,
            baseline_ranks=ranks,
            candidate_ranks=self._graphs[1].mesh.size,
            entering=tuple((value, (ranks, *self._node(0, value).type.shape)) for value in needed),
            relations=relations,
            goals=tuple(self._goal(*goal) for goal in use.goals),
            baseline_types=self._types(0, use.baseline_entering),
            candidate_types=self._types(1, use.candidate_entering),
        )

    def learn(self, region: Region, found: Sequence[Shown | None]) -> None:
        """What was shown of a region's goals is known from here on."""
        for goal, answer in zip(region.goals, found, strict=True):
            if answer is None:
                continue
            part = Part(baseline=goal.baseline, index=answer.index)
            relation = InputRelation(candidate=goal.candidate, parts=(part,), text=answer.layout)
            self._known.setdefault(goal.candidate, relation)
            if goal.output is not None:
                self._shown.add(goal.output)

    def unshown(self) -> tuple[str, ...]:
        """The outputs of which nothing was shown."""
        return tuple(name for name in self._outputs if name not in self._shown)

    def _node(self, side: int, node: NodeId) -> Node:
        found = self._nodes[side].get(node)
        if found is None:
            raise Rejected(f"there is no node {node!r} in {self._graphs[side].name!r}")
        return found

    def _chosen(self, side: int, ids: Iterable[NodeId]) -> tuple[Node, ...]:
        return tuple(self._node(side, node) for node in ids)

    def _types(self, side: int, ids: Iterable[NodeId]) -> Types:
        return tuple((node, self._node(side, node).type) for node in ids)

    def _goal(self, baseline: NodeId, candidate: NodeId, output: str | None) -> Goal:
        if output is None:
            return Goal(baseline=baseline, candidate=candidate, choices=None)
        relation = self._outputs.get(output)
        if (
            relation is None
            or self._results.get(output) != candidate
            or self._wanted.get(relation.baseline) != baseline
        ):
            raise Rejected(f"{candidate!r} and {baseline!r} are not output {output!r}")
        return Goal(baseline=baseline, candidate=candidate, choices=relation.choices, output=output)


def _inputs(nodes: Iterable[Node]) -> list[NodeId]:
    return [node.id for node in nodes if node.op == "input"]


def _must_be_closed(nodes: Sequence[Node], entering: Iterable[NodeId]) -> None:
    """Operands come before what reads them, or from outside."""
    known = set(entering)
    for node in nodes:
        missing = [operand for operand in node.operands if operand not in known]
        if missing:
            raise Rejected(f"{node.id!r} reads {missing[0]!r}, which is not in its region")
        known.add(node.id)
