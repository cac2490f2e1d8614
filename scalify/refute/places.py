"""Places that a program computes from real numbers: one bit of rounding may move them beyond a table."""

from scalify.ir.graph import Graph, NodeId
from scalify.ir.ops.dtypes import KIND_OF

_LOOK_UPS = {"take": 1, "take_along": 1, "scatter": 1, "index_put": 2, "cross_entropy": 1}
"""The first operand of each that says where."""


def computed_places(graph: Graph) -> bool:
    """Whether a look-up depends on a real number that was cast to a whole one."""
    kinds = {node.id: KIND_OF[node.type.dtype] for node in graph.nodes}
    found: set[NodeId] = set()
    for node in graph.nodes:
        cast = node.op == "cast" and kinds[node.id] == "int" and kinds[node.operands[0]] == "float"
        if cast or any(operand in found for operand in node.operands):
            found.add(node.id)
        places = node.operands[_LOOK_UPS[node.op] :] if node.op in _LOOK_UPS else ()
        if node.op in ("take", "take_along", "scatter", "cross_entropy"):
            places = places[:1]
        if any(place in found for place in places):
            return True
    return False
