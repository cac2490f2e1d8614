"""What is known of the suspect, what was needed, and the movements of data around it."""

from collections.abc import Mapping

from scalify.ir.graph import Node, NodeId
from scalify.localize.align import is_collective
from scalify.localize.first import Finding, Scene, Why, is_movement
from scalify.localize.mistakes import guess
from scalify.localize.text import operand_text, relation_text
from scalify.verdict import Place, Suspect

MOST_KNOWN = 6
MOST_CHAIN = 12


def explain(scene: Scene, finding: Finding) -> Suspect:
    """The suspect in sentences."""
    node, given = finding.node, scene.counterpart(finding.node.id)
    known = [operand_text(scene, node, position) for position in range(min(len(node.operands), MOST_KNOWN))]
    standing = scene.standing(node.id)
    if standing.counterpart is not None:
        known.append(f"the result is {relation_text(standing)}")
    return Suspect(
        candidate=place_of(node),
        baseline=None if given is None else place_of(given),
        known=tuple(known),
        needed=_needed(scene, finding, given),
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
    if is_collective(finding.node):
        return f"the baseline's {given.id}, nothing pending that it was to settle"
    operands = ", ".join(given.operands)
    reads = f" of {operands}" if operands else ""
    return f"the baseline's {given.id} ({given.op}{reads}), each dimension whole or in blocks by rank"


def _chain(scene: Scene, node: Node, given: Node | None) -> tuple[Place, ...]:
    own = _movements_before(scene.nodes, node)
    other = _movements_before(scene.given, given) if given is not None else []
    return tuple(place_of(each) for each in (*own, *other))


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
