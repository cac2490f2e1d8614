"""What ranks that stand side by side compute alike, once.

In: an unrolled graph and the relations of its inputs. Out: the same graph, in which inputs that are the same
of the baseline's are read from the first rank that holds them, and equal operations on equal values are one
node. So what all ranks have between two layers is one value again, and a program can be cut there.
"""

from collections.abc import Mapping
from dataclasses import replace

from scalify.ir.graph import Graph, Node, NodeId
from scalify.relate.model import InputRelation, Relations


def shared(graph: Graph, relations: Relations) -> Graph:
    """The graph without repetitions. Its inputs stay, whether used or not."""
    held = {relation.candidate: relation for relation in relations.inputs}
    first: dict[object, NodeId] = {}
    one: dict[NodeId, NodeId] = {}
    kept: list[Node] = []
    for node in graph.nodes:
        operands = tuple(one[operand] for operand in node.operands)
        known = first.setdefault(_what(node, operands, held), node.id)
        one[node.id] = known
        if known == node.id or node.op == "input":
            kept.append(replace(node, operands=operands))
    outputs = tuple(replace(output, value=one[output.value]) for output in graph.outputs)
    return replace(graph, nodes=tuple(kept), outputs=outputs)


def _what(node: Node, operands: tuple[NodeId, ...], held: Mapping[NodeId, InputRelation]) -> object:
    """Equal for nodes of equal values: for inputs, by what is assumed of them."""
    if node.op == "random" or (node.op == "input" and node.id not in held):
        return node.id
    if node.op != "input":
        return node.op, operands, tuple(node.attrs.items()), node.type
    relation = held[node.id]
    return relation.axis, tuple((part.baseline, part.index) for part in relation.parts), node.type
