"""Places that a program computes from real numbers: one bit of rounding may move them beyond a table."""

from scalify.ir.graph import Graph, NodeId
from scalify.ir.look_ups import indices
from scalify.ir.ops.dtypes import KIND_OF


def computed_places(graph: Graph) -> bool:
    """Whether a look-up depends on a real number that was cast to a whole one."""
    kinds = {node.id: KIND_OF[node.type.dtype] for node in graph.nodes}
    found: set[NodeId] = set()
    for node in graph.nodes:
        cast = node.op == "cast" and kinds[node.id] == "int" and kinds[node.operands[0]] == "float"
        if cast or any(operand in found for operand in node.operands):
            found.add(node.id)
        if any(node.operands[at] in found for at, _ in indices(node)):
            return True
    return False
