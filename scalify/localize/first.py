"""The first node at which the candidate goes its own way.

A node is fine if it is its counterpart, cleanly laid out (or read in the same way by code that is written in
another way). What is not fine and leads, through nothing but nodes that are not fine, to a result that was
not proved, is under suspicion; the first of these whose operands are all fine is the suspect. A rearrangement
of data that later code takes back is thus never blamed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Protocol, cast

from scalify.ir.graph import Graph, Node, NodeId
from scalify.layout.ranks import joined
from scalify.layout.views import Partial
from scalify.localize.align import LEAVES, MOVEMENTS, Alignment, align, is_collective
from scalify.localize.standing import Standing, Standings
from scalify.prove.engine import Budget
from scalify.prove.region import Goal, Region, RegionProof
from scalify.relate.model import InputRelation


class Why(Enum):
    """On what ground a node is the suspect."""

    DIVERGES = "its operands are as in the baseline, it is not"
    PENDING = "a result is still to be combined over ranks"
    OTHER_RESULT = "the result is another one of the baseline's"
    OTHER_LAYOUT = "the result does not lie on the ranks as it should"
    WITHOUT_VIEW = "the first value of which nothing is known"


class KnownStandings(Protocol):
    """How nodes stand to the baseline's, whether that was derived or measured."""

    def of(self, node: NodeId, counterpart: NodeId | None) -> Standing:
        """The best that is known of a candidate's node against a baseline's."""
        ...

    def has_view(self, node: NodeId) -> bool:
        """Whether the node is known to be anything of the baseline's."""
        ...

    def scales(self, node: NodeId) -> frozenset[Fraction]:
        """The factors by which the node is known to be anything of the baseline's."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """All that is known around a region that was not proved.

    ``inside`` are the candidate's nodes that it computes, in the order of the program; ``nodes`` and
    ``given`` are all of both programs, by id. ``relations`` say what enters.
    """

    relations: Sequence[InputRelation]
    baseline: Graph
    candidate: Graph
    inside: tuple[Node, ...]
    nodes: Mapping[NodeId, Node]
    given: Mapping[NodeId, Node]
    alignment: Alignment
    standings: KnownStandings
    unproved: tuple[Goal, ...]

    def standing(self, node: NodeId) -> Standing:
        """How a node stands to its counterpart."""
        standing = self.standings.of(node, self.alignment.counterpart.get(node))
        return standing if standing.is_related else self._reduced(node, standing)

    def _reduced(self, node: NodeId, standing: Standing) -> Standing:
        """A reduction over what ranks hold one element of each: it is no term of its own, so has no view."""
        own, given = self.nodes[node], self.counterpart(node)
        if own.op != "reduce" or given is None or given.op != "reduce" or own.attrs != given.attrs:
            return standing
        axes = cast(tuple[int, ...], own.attrs["axes"])
        operand = self.standing(own.operands[0])
        shape = self.nodes[own.operands[0]].type.shape
        cut = [split for split in operand.splits if split.dim in axes and shape[split.dim] == 1]
        if operand.counterpart != given.operands[0] or not operand.is_clean or operand.partial or not cut:
            return standing
        digits = joined(tuple(digit for split in cut for digit in split.digits() or ()))
        partial = Partial(str(own.attrs["kind"]), digits)
        return replace(
            operand, counterpart=given.id, splits=(), layout="reduced on each rank", partial=partial
        )

    def own_counterpart(self, node: NodeId) -> Node | None:
        """The counterpart of a node that has not inherited it."""
        return None if node in self.alignment.inherited else self.counterpart(node)

    def counterpart(self, node: NodeId) -> Node | None:
        """The baseline's node, where one is known."""
        found = self.alignment.counterpart.get(node)
        return None if found is None else self.given.get(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The suspect and the ground; ``goal`` where a result was the reason to look at it."""

    node: Node
    why: Why
    goal: Goal | None = None


def scene_of(region: Region, proof: RegionProof, baseline: Graph, candidate: Graph, budget: Budget) -> Scene:
    """Align both sides and gather what was found."""
    entering = {
        relation.candidate: relation.parts[0].baseline
        for relation in region.relations
        if len({part.baseline for part in relation.parts}) == 1
    }
    reached = {goal.candidate for goal, found in zip(region.goals, proof.shown, strict=True) if found}
    own, other = _in_order(region.candidate, candidate), _in_order(region.baseline, baseline)
    return Scene(
        relations=region.relations,
        baseline=baseline,
        candidate=candidate,
        inside=tuple(node for node in own if node.op != "input"),
        nodes=candidate.by_id(),
        given=baseline.by_id(),
        alignment=align(other, own, entering),
        standings=Standings(region, proof, candidate.mesh, budget, windows=candidate.unrolled > 0),
        unproved=tuple(
            goal
            for goal, found in zip(region.goals, proof.shown, strict=True)
            if found is None and (goal.choices is not None or goal.candidate not in reached)
        ),
    )


def _in_order(part: Sequence[Node], graph: Graph) -> list[Node]:
    inside = {node.id for node in part}
    return [node for node in graph.nodes if node.id in inside]


def under_suspicion(scene: Scene) -> frozenset[NodeId]:
    """What is not fine, and leads through nothing but the like to a result that was not proved."""
    fine = {node.id for node in scene.inside if is_fine(scene, node)}
    return frozenset(_under_suspicion(scene, scene.inside, fine))


def first(scene: Scene, under: frozenset[NodeId]) -> Finding | None:
    """The suspect of a region, of which some nodes are ``under`` suspicion."""
    inside = scene.inside
    suspects = [node for node in inside if node.id in under]
    begin = [node for node in suspects if not any(operand in under for operand in node.operands)]
    if begin:
        node = min(begin, key=_order(suspects))
        node = _past_restructuring(scene, node, suspects)
        return Finding(node=_settled(scene, node), why=Why.DIVERGES)
    return among_results(scene) or _without_view(scene, inside)


def _order(suspects: Sequence[Node]) -> Callable[[Node], int]:
    """Program order, in which a constant stands where it is first used."""
    place = {node.id: number for number, node in enumerate(suspects)}
    used: dict[NodeId, int] = {}
    for number, node in enumerate(suspects):
        for operand in node.operands:
            used.setdefault(operand, number)
    return lambda node: used.get(node.id, place[node.id]) if node.op in LEAVES else place[node.id]


def is_fine(scene: Scene, node: Node) -> bool:
    """Whether nothing is wrong with a node by itself."""
    standing = scene.standing(node.id)
    if standing.is_clean:
        return True
    if node.op in LEAVES:
        return node.id not in scene.alignment.counterpart
    if node.id in scene.alignment.sure or is_movement(node):
        return False
    return standing.is_related and standing.scale == 1 and _mixes(scene, node)


def is_movement(node: Node) -> bool:
    """Whether a node only moves numbers, on a rank or between ranks."""
    return node.op in MOVEMENTS or is_collective(node)


def _mixes(scene: Scene, node: Node) -> bool:
    """Whether a node brings together what was computed in two places, so that order matters to it."""
    inputs = [operand for operand in node.operands if not _is_leaf(scene, operand)]
    return len(set(inputs)) > 1 or node.op in ("reduce", "softmax", "layer_norm", "rms_norm")


def _is_leaf(scene: Scene, value: NodeId) -> bool:
    return scene.nodes[value].op in LEAVES


def _under_suspicion(scene: Scene, inside: Sequence[Node], fine: set[NodeId]) -> set[NodeId]:
    nodes = {node.id: node for node in inside}
    under: set[NodeId] = set()
    left = [goal.candidate for goal in scene.unproved]
    while left:
        value = left.pop()
        if value in nodes and value not in under and value not in fine:
            under.add(value)
            left.extend(nodes[value].operands)
    return under


def _past_restructuring(scene: Scene, node: Node, suspects: Sequence[Node]) -> Node:
    """From what the baseline does not have, and what is still understood, to where it no longer is."""
    seen = {node.id}
    while node.id in scene.alignment.inherited and not _is_end(scene, node):
        user = next((n for n in suspects if n.id not in seen and seen & {*n.operands}), None)
        if user is None:
            break
        node = user
        seen.add(node.id)
    return node


def _is_end(scene: Scene, node: Node) -> bool:
    """Whether a node without a counterpart of its own is where understanding ends."""
    if node.op in ("all_gather", "reduce_scatter") and node.id in scene.alignment.counterpart:
        return True
    if node.op in ("all_reduce", "reduce_scatter"):
        before, after = (scene.standings.scales(value) for value in (node.operands[0], node.id))
        return not after or (1 in before and 1 not in after)
    return not scene.standings.has_view(node.id) and _depends_on_data(scene, node)


def _depends_on_data(scene: Scene, node: Node) -> bool:
    left, seen = [node.id], {node.id}
    while left:
        value = scene.nodes[left.pop()]
        if value.op == "input":
            return True
        left.extend(operand for operand in value.operands if operand not in seen)
        seen.update(value.operands)
    return False


def _settled(scene: Scene, node: Node) -> Node:
    """Where a pending combination is misused although a collective was there for it: that collective."""
    if is_collective(node):
        return node
    for operand in node.operands:
        collective = last_collective(scene, operand)
        if scene.standing(operand).partial is not None and collective is not None:
            return collective
    return node


def last_collective(scene: Scene, value: NodeId) -> Node | None:
    """The collective whose result a value is, but for movements on the rank."""
    node = scene.nodes[value]
    while node.op in MOVEMENTS and node.operands:
        node = scene.nodes[node.operands[0]]
    return node if is_collective(node) else None


def among_results(scene: Scene) -> Finding | None:
    """A result that is fine by itself: not combined yet, in another layout, or in another one's place."""
    for goal in scene.unproved:
        node = scene.nodes[goal.candidate]
        if scene.alignment.counterpart.get(node.id) != goal.baseline:
            return Finding(node=node, why=Why.OTHER_RESULT, goal=goal)
        if scene.standing(node.id).partial is not None:
            return Finding(node=_settled(scene, node), why=Why.PENDING, goal=goal)
        if scene.standing(node.id).is_related:
            return Finding(node=node, why=Why.OTHER_LAYOUT, goal=goal)
    return None


def _without_view(scene: Scene, inside: Sequence[Node]) -> Finding | None:
    needed = {goal.candidate for goal in scene.unproved}
    for node in reversed(inside):
        if node.id in needed:
            needed.update(node.operands)
    node = next((n for n in inside if n.id in needed and not scene.standings.has_view(n.id)), None)
    return None if node is None else Finding(node=node, why=Why.WITHOUT_VIEW)
