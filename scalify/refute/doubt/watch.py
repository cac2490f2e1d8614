"""A program watched as it runs: every node with its result and with what it was given."""

from collections import Counter
from collections.abc import Callable, Sequence

from scalify.ir.evaluate import PerRank, Seen
from scalify.ir.graph import Graph, Node, NodeId

Look = Callable[[Node, PerRank, Sequence[PerRank]], PerRank]
"""Sees a node's result and its operands on every rank, and says what is to be taken for the result."""


def watching(graph: Graph, look: Look) -> Seen:
    """Values are held only as long as the run itself holds them."""
    left = Counter(operand for node in graph.nodes for operand in set(node.operands))
    left.update(output.value for output in graph.outputs)
    held: dict[NodeId, PerRank] = {}

    def seen(node: Node, values: PerRank) -> PerRank:
        result = held[node.id] = look(node, values, [held[operand] for operand in node.operands])
        for each in set(node.operands):
            left[each] -= 1
            if not left[each]:
                del held[each]
        if not left[node.id]:
            del held[node.id]
        return result

    return seen
