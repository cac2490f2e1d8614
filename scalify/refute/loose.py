"""The same program with a place for noise before every op that combines elements.

A row that holds one computed number many times over is combined without error by some ways of doing it and
with an error by others. Inside an op there is no noise, so its operands get some, each element its own.
"""

from dataclasses import replace
from types import MappingProxyType

from scalify.ir.graph import Graph, Node, NodeId
from scalify.ir.ops.dtypes import KIND_OF

COMBINING = frozenset({
    "einsum", "conv", "reduce", "cumsum", "cumprod", "softmax", "log_softmax", "logsumexp", "layer_norm",
    "rms_norm", "group_norm", "batch_norm", "attention", "cross_entropy", "avg_pool", "interpolate",
})  # fmt: skip
_ORDERING = frozenset({"max", "min", "any", "all"})
LOOSE = "~loose"


def loosened(graph: Graph) -> Graph:
    """With casts that change nothing, whose names end in ``~loose``, before computed operands."""
    known = {node.id: node for node in graph.nodes}
    made: dict[NodeId, NodeId] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op not in COMBINING or node.attrs.get("kind") in _ORDERING:
            nodes.append(node)
            continue
        for each in node.operands:
            given = known[each]
            if (
                each in made
                or given.op in ("input", "constant")
                or KIND_OF[given.type.dtype] in ("int", "bool")
            ):
                continue
            made[each] = NodeId(f"{each}{LOOSE}")
            nodes.append(_cast(given, made[each]))
        nodes.append(replace(node, operands=tuple(made.get(each, each) for each in node.operands)))
    return replace(graph, nodes=tuple(nodes))


def is_loose(node: Node) -> bool:
    """Whether a node is there for noise only."""
    return node.id.endswith(LOOSE)


def _cast(given: Node, name: NodeId) -> Node:
    return replace(given, id=name, op="cast", operands=(given.id,), attrs=MappingProxyType({}))
