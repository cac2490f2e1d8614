"""Meanings of unknown operations, given by the user as graphs.

In: a graph with ``opaque`` nodes, and for some of their targets a graph that computes the same from the same
operands (its inputs, in order). Out: the graph with these nodes written out. A definition is a graph like any
other, captured from a function or read from a file; nothing of it is run. What a proof then says holds if the
definitions are right: each one that was used is an assumption.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scalify.errors import InvalidGraph
from scalify.ir.check import check
from scalify.ir.graph import Graph, Node, NodeId, TensorType
from scalify.ir.ops.dtypes import KIND_OF


@dataclass(frozen=True, slots=True, kw_only=True)
class Defined:
    """A graph with operations written out, and how many of which."""

    graph: Graph
    used: Mapping[str, int]

    def assumptions(self) -> tuple[str, ...]:
        """What has to be right, in words."""
        return tuple(
            f"{target} is what its definition computes ({count} times)" for target, count in self.used.items()
        )


def define(graph: Graph, definitions: Mapping[str, Sequence[Graph]]) -> Defined:
    """Write out every opaque node of a defined target whose operands have the definition's shapes.

    A target may have several definitions, for other shapes; of those that fit, the first is taken.
    """
    for target, graphs in definitions.items():
        for one in graphs:
            _check_definition(target, one)
    types = {node.id: node.type for node in graph.nodes}
    nodes: list[Node] = []
    used: dict[str, int] = {}
    for node in graph.nodes:
        target = str(node.attrs.get("target", "")) if node.op == "opaque" else ""
        fitting = [one for one in definitions.get(target, ()) if _fits(one, node, types)]
        if not fitting:
            nodes.append(node)
            continue
        nodes.extend(_written_out(node, fitting[0], types))
        used[target] = used.get(target, 0) + 1
    if not used:
        return Defined(graph=graph, used={})
    written = replace(graph, nodes=tuple(nodes))
    check(written)
    return Defined(graph=written, used=used)


def _check_definition(target: str, graph: Graph) -> None:
    if len(graph.outputs) != 1 or graph.mesh.size != 1:
        raise InvalidGraph(
            f"the definition of {target} has {len(graph.outputs)} results on {graph.mesh.size} ranks",
            hint="define an operation by a graph of one rank with one result",
        )


def _fits(definition: Graph, node: Node, types: Mapping[NodeId, TensorType]) -> bool:
    """Whether operands and result have the shapes that the definition has, and operands are as there:
    whole numbers, or real ones."""
    results = {own.id: own.type for own in definition.nodes}
    wanted = [(own.type.shape, KIND_OF[own.type.dtype]) for own in definition.inputs()]
    given = [(types[operand].shape, KIND_OF[types[operand].dtype]) for operand in node.operands]
    return wanted == given and results[definition.outputs[0].value].shape == node.type.shape


def _written_out(node: Node, definition: Graph, types: Mapping[NodeId, TensorType]) -> list[Node]:
    """The definition's nodes in the place of one node; the last one has its name, type and readers.

    What it defines is an operation of its own dtypes: operands of others are read in these.
    """
    names: dict[NodeId, NodeId] = {}
    written: list[Node] = []
    for own, operand in zip(definition.inputs(), node.operands, strict=True):
        names[own.id] = operand
        if types[operand].dtype != own.type.dtype:
            names[own.id] = NodeId(f"{node.id}:{own.id}")
            cast = replace(node, id=names[own.id], op="cast", operands=(operand,), attrs={}, type=own.type)
            written.append(cast)
    for own in definition.nodes:
        if own.op == "input":
            continue
        names[own.id] = NodeId(f"{node.id}:{own.id}")
        operands = tuple(names[operand] for operand in own.operands)
        place = {"site": node.site, "stack": node.stack, "scope": node.scope}
        written.append(replace(own, id=names[own.id], operands=operands, **place))
    result = names[definition.outputs[0].value]
    written.append(replace(node, op="cast", operands=(result,), attrs={}))
    return written
