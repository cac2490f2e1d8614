"""One graph for all ranks: merged where their programs are one, side by side where they are not.

Side by side is for ranks whose shards are uneven, and for ranks that work together in other ways than by
running one program (stages). Ranks of equal shapes that never meet and run something else are a mistake.
"""

from collections.abc import Mapping

from scalify.errors import InvalidGraph
from scalify.ir.graph import Graph, TensorType
from scalify.ir.mesh import Mesh
from scalify.ir.ops import OPS
from scalify.load.messages import exchanged, is_message
from scalify.load.ranks import check_complete, merge
from scalify.load.unroll import unroll


def together(graphs: Mapping[int, Graph], mesh: Mesh) -> Graph:
    """The program of all ranks of the mesh. ``graphs`` has one for every rank."""
    check_complete(graphs, mesh)
    graphs = exchanged(graphs)
    try:
        return merge(graphs, mesh)
    except InvalidGraph as difference:
        if not (_have_uneven_shards(graphs) or _meet(graphs)):
            raise
        try:
            return unroll(graphs, mesh)
        except InvalidGraph as error:
            raise InvalidGraph(
                f"{difference}; and they cannot be put side by side: {error}", hint=error.hint
            ) from None


def _have_uneven_shards(graphs: Mapping[int, Graph]) -> bool:
    return len({tuple(_inputs(graph).items()) for graph in graphs.values()}) > 1


def _inputs(graph: Graph) -> Mapping[str, TensorType]:
    return {str(node.attrs["name"]): node.type for node in graph.inputs()}


def _meet(graphs: Mapping[int, Graph]) -> bool:
    """Whether every rank runs collectives, or sends or receives."""
    return all(
        any(OPS[node.op].across or is_message(node) for node in graph.nodes) for graph in graphs.values()
    )
