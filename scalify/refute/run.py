"""One program on given values, with each input made just before it is first used."""

from dataclasses import replace

from scalify.ir.evaluate import PerRank, Seen, evaluate
from scalify.ir.graph import Graph, Node, NodeId
from scalify.refute.pair import Given, Made
from scalify.refute.tiles import in_pieces
from scalify.refute.unknown import anything, runnable
from scalify.verdict import Draw


def run(graph: Graph, given: Given, draw: Draw, seen: Seen | None = None) -> dict[str, PerRank]:
    """The outputs of one program by name, one array per rank; ``seen`` watches its nodes."""
    graph = runnable(graph)
    kept, instead = in_pieces(graph, given.piece) if isinstance(given, Made) else (graph, None)
    unknown = anything(graph, draw)
    return evaluate(late(kept), given, stand_in=unknown, seen=seen, instead=instead)


def late(graph: Graph) -> Graph:
    """The same graph, each node without operands standing just before the first that reads it."""
    waiting = {node.id: node for node in graph.nodes if not node.operands}
    nodes: list[Node] = []

    def settle(operands: tuple[NodeId, ...]) -> None:
        nodes.extend(waiting.pop(operand) for operand in dict.fromkeys(operands) if operand in waiting)

    for node in graph.nodes:
        if node.operands:
            settle(node.operands)
            nodes.append(node)
    settle(tuple(output.value for output in graph.outputs))
    return replace(graph, nodes=tuple(nodes))
