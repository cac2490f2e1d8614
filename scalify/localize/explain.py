"""What is known of the suspect, what was needed, and the movements of data around it."""

from collections.abc import Collection, Mapping

from scalify.ir.graph import Node, NodeId
from scalify.localize.align import is_collective
from scalify.localize.first import Finding, Scene, Why, is_movement
from scalify.localize.mistakes import guess
from scalify.localize.text import operand_text, relation_text
from scalify.verdict import Extent, Place, Suspect

MOST_KNOWN = 6
MOST_CHAIN = 12
MOST_ENDS = 3


def explain(scene: Scene, finding: Finding) -> Suspect:
    """The suspect in sentences."""
    node, given = finding.node, scene.counterpart(finding.node.id)
    known = [operand_text(scene, node, position) for position in range(min(len(node.operands), MOST_KNOWN))]
    standing = scene.standing(node.id)
    return Suspect(
        candidate=place_of(node),
        baseline=None if given is None else place_of(given),
        known=tuple(known),
        needed=_needed(scene, finding, given),
        derivable=() if standing.counterpart is None else (f"it is {relation_text(standing)}",),
        chain=_chain(scene, node, given),
        guess=guess(scene, finding),
    )


def place_of(node: Node) -> Place:
    """A node as people find it."""
    return Place(node=node.id, op=node.op, site=node.site, scope=node.scope, stack=node.stack)


def _needed(scene: Scene, finding: Finding, given: Node | None) -> str:
    if finding.goal is not None and finding.why is not Why.DIVERGES:
        choices = " or ".join(name for name, _ in finding.goal.choices or ())
        return f"the baseline's {finding.goal.baseline}, {choices or 'in any layout'}, nothing pending"
    if given is None:
        return "a value of the baseline that it makes up"
    if finding.why is Why.PENDING:
        return f"the baseline's {given.id} itself, combined over ranks before it is used"
    if is_collective(finding.node):
        return f"the baseline's {given.id}, nothing pending that it was to settle"
    operands = ", ".join(given.operands)
    reads = f" of {operands}" if operands else ""
    return f"the baseline's {given.id} ({given.op}{reads}), each dimension whole or in blocks by rank"


def _chain(scene: Scene, node: Node, given: Node | None) -> tuple[Place, ...]:
    own = _movements_before(scene.nodes, node)
    seen = {(each.op, each.site) for each in own if each.site is not None}
    other = _movements_before(scene.given, given) if given is not None else []
    other = [each for each in other if (each.op, each.site) not in seen]
    return tuple(place_of(each) for each in (*own, *other))


def extent_of(scene: Scene, under: Collection[NodeId]) -> Extent:
    """How much of both programs is not proved, and between which places it lies."""
    nodes = [node for node in scene.inside if node.id in under]
    read = {operand for node in nodes for operand in node.operands}
    begins = [node for node in nodes if not any(operand in under for operand in node.operands)]
    ends = [node for node in nodes if node.id not in read]
    given = {scene.alignment.counterpart[node.id] for node in nodes if node.id in scene.alignment.counterpart}
    return Extent(
        baseline_nodes=len(given),
        candidate_nodes=len(nodes),
        begins=tuple(place_of(node) for node in begins[:MOST_ENDS]),
        ends=tuple(place_of(node) for node in ends[:MOST_ENDS]),
    )


def _movements_before(nodes: Mapping[NodeId, Node], node: Node) -> list[Node]:
    """The movements of data that lead to a node, in the order in which they run."""
    found: dict[NodeId, Node] = {}
    left = [*node.operands]
    while left and len(found) < MOST_CHAIN:
        source = nodes[left.pop(0)]
        if source.id not in found and source.operands and is_movement(source):
            found[source.id] = source
            left.extend(source.operands)
    return [*reversed(found.values())]
