"""Nodes without a meaning of their own, and what may be said of what depends on them.

Memory that was never written may hold anything: it gets values of its own, of the candidate's as one of the
witness' free inputs. Results of unknown operations, of random draws, and constants that are not in the graph
are not known: what depends on them is not compared.
"""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from scalify.ir.evaluate import PerRank, StandIn
from scalify.ir.graph import Attr, Graph, Node, NodeId
from scalify.refute.draw import drawn
from scalify.refute.pair import input_of
from scalify.verdict import Domain, Draw

UNWRITTEN = frozenset(
    {"uninitialised", "empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"}
)
"""What memory that was never written to is called, whatever stands before and behind."""


def is_unwritten(node: Node) -> bool:
    """Whether a node is memory that nobody has written to."""
    if node.op != "opaque":
        return False
    return not UNWRITTEN.isdisjoint(str(node.attrs["target"]).replace(":", ".").split("."))


def is_withheld(node: Node) -> bool:
    """Whether a node is a constant of which only a digest is known."""
    return node.op == "constant" and "data" not in node.attrs


def runnable(graph: Graph) -> Graph:
    """The graph with withheld constants as unknown operations, for which something stands in."""
    if not any(map(is_withheld, graph.nodes)):
        return graph
    return replace(graph, nodes=tuple(_unknown(node) if is_withheld(node) else node for node in graph.nodes))


def _unknown(node: Node) -> Node:
    attrs: dict[str, Attr] = {"target": "constant", "config": str(node.attrs.get("digest"))}
    return replace(node, op="opaque", attrs=MappingProxyType(attrs))


def unwritten(graph: Graph) -> tuple[str, ...]:
    """The memory that a program reads without anybody having written to it."""
    return tuple(f"memory never written: {node.id}" for node in graph.nodes if is_unwritten(node))


def unknown_nodes(graph: Graph, *, memory: bool = False) -> frozenset[NodeId]:
    """What depends on random draws, unknown operations, or constants that are not in the graph.

    ``memory`` counts what nobody has written to as unknown too.
    """
    tainted: set[NodeId] = set()
    for node in graph.nodes:
        unknown = node.op in ("opaque", "random") and (memory or not is_unwritten(node))
        if unknown or is_withheld(node) or any(operand in tainted for operand in node.operands):
            tainted.add(node.id)
    return frozenset(tainted)


def unknown_outputs(graph: Graph) -> frozenset[str]:
    """Outputs of which nothing is known."""
    tainted = unknown_nodes(graph)
    return frozenset(output.name for output in graph.outputs if output.value in tainted)


def anything(graph: Graph, draw: Draw) -> StandIn:
    """Some values, for all nodes without a meaning."""

    def stand_in(node: Node, operands: Sequence[PerRank]) -> PerRank:
        del operands
        filled = input_of(node, f"memory: {node.id}", Domain())
        return [drawn(draw, filled, copy=rank) for rank in range(graph.mesh.size)]

    return stand_in
