"""The first node at which the candidate goes its own way.

A node is fine if it is its counterpart, cleanly laid out (or read in the same way by code that is written in
another way). What is not fine and leads, through nothing but nodes that are not fine, to a result that was
not proved, is under suspicion; the first of these whose operands are all fine is the suspect. A rearrangement
of data that later code takes back is thus never blamed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from scalify.ir.graph import Graph, Node, NodeId
from scalify.localize.align import LEAVES, MOVEMENTS, Alignment, align, is_collective
from scalify.localize.standing import Standing, Standings
from scalify.prove.region import Goal, Region, RegionProof


class Why(Enum):
    """On what ground a node is the suspect."""

    DIVERGES = "its operands are as in the baseline, it is not"
    PENDING = "a result is still to be combined over ranks"
    OTHER_RESULT = "the result is another one of the baseline's"
    WITHOUT_VIEW = "the first value of which nothing is known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """All that is known around a region that was not proved."""

    region: Region
    baseline: Graph
    candidate: Graph
    nodes: Mapping[NodeId, Node]
    given: Mapping[NodeId, Node]
    alignment: Alignment
    standings: Standings
    unproved: tuple[Goal, ...]

    def standing(self, node: NodeId) -> Standing:
        """How a node stands to its counterpart."""
        return self.standings.of(node, self.alignment.counterpart.get(node))

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


def scene_of(region: Region, proof: RegionProof, baseline: Graph, candidate: Graph) -> Scene:
    """Align both sides and gather what was found."""
    entering = {
        relation.candidate: relation.parts[0].baseline
        for relation in region.relations
        if len({part.baseline for part in relation.parts}) == 1
    }
    reached = {goal.candidate for goal, found in zip(region.goals, proof.shown, strict=True) if found}
    return Scene(
        region=region,
        baseline=baseline,
        candidate=candidate,
        nodes=candidate.by_id(),
        given=baseline.by_id(),
        alignment=align(region.baseline, region.candidate, entering),
        standings=Standings(region, proof, candidate.mesh),
        unproved=tuple(
            goal
            for goal, found in zip(region.goals, proof.shown, strict=True)
            if found is None and (goal.choices is not None or goal.candidate not in reached)
        ),
    )


def first(scene: Scene) -> Finding | None:
    """The suspect of a region."""
    inside = [node for node in scene.region.candidate if node.op != "input"]
    fine = {node.id for node in inside if is_fine(scene, node)}
    under = _under_suspicion(scene, inside, fine)
    begin = [node for node in inside if node.id in under and not any(o in under for o in node.operands)]
    if begin:
        node = _past_movements(scene, begin[0], inside, under)
        return Finding(node=_settled(scene, node), why=Why.DIVERGES)
    return _among_results(scene) or _without_view(scene, inside)


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


def _past_movements(scene: Scene, node: Node, inside: Sequence[Node], under: set[NodeId]) -> Node:
    """From a movement of data that the baseline does not have to the computation that cannot use it."""
    seen = {node.id}
    while node.op in MOVEMENTS and node.id in scene.alignment.inherited:
        user = next((n for n in inside if n.id in under and n.id not in seen and seen & {*n.operands}), None)
        if user is None:
            break
        node = user
        seen.add(node.id)
    return node


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


def _among_results(scene: Scene) -> Finding | None:
    """A result that is fine by itself: not combined yet, in another layout, or in another one's place."""
    for goal in scene.unproved:
        node = scene.nodes[goal.candidate]
        if node.op == "input":
            continue
        if scene.alignment.counterpart.get(node.id) != goal.baseline:
            return Finding(node=node, why=Why.OTHER_RESULT, goal=goal)
        if scene.standing(node.id).partial is not None:
            return Finding(node=_settled(scene, node), why=Why.PENDING, goal=goal)
    return None


def _without_view(scene: Scene, inside: Sequence[Node]) -> Finding | None:
    needed = {goal.candidate for goal in scene.unproved}
    for node in reversed(inside):
        if node.id in needed:
            needed.update(node.operands)
    node = next((n for n in inside if n.id in needed and not scene.standings.has_view(n.id)), None)
    return None if node is None else Finding(node=node, why=Why.WITHOUT_VIEW)
