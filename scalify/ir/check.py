"""Whether a graph is well-formed: run on everything that is loaded, and after every pass.

In: a Graph from anywhere. Out: nothing, or ``InvalidGraph`` that names the first wrong node, its op and
the line it stems from. Time is linear in what the graph holds; nothing recurses.
"""

from scalify.errors import InvalidGraph
from scalify.ir.graph import Attr, Graph, Node, NodeId, Site, TensorType
from scalify.ir.mesh import Mesh
from scalify.ir.ops import type_of
from scalify.ir.ops.dtypes import KIND_OF
from scalify.ir.ops.spec import mistake
from scalify.ir.unrolled import MOST_RANKS, unranked

MAX_NODES = 2_000_000
MAX_RANKS = 65_536
MAX_DIMENSIONS = 32
MAX_DIMENSION = 2**48


def check(graph: Graph) -> None:
    """Raise InvalidGraph unless the graph is well-formed."""
    _check_size(graph)
    types: dict[NodeId, TensorType] = {}
    inputs: set[Attr] = set()
    for node in graph.nodes:
        try:
            _check_node(node, types, graph.mesh)
            _check_name(node, inputs)
        except InvalidGraph as error:
            raise InvalidGraph(f"{place(node)}: {error}", hint=error.hint) from None
        types[node.id] = node.type
    _check_outputs(graph, types, inputs)
    if graph.unrolled:
        _check_unrolled(graph)


def place(node: Node) -> str:
    """A node as a message names it: id, op and source line."""
    return f"node {node.id!r} ({node.op}){_line(node.site)}"


def _line(site: Site | None) -> str:
    return f" at {site.file}:{site.line}" if site else ""


def _check_size(graph: Graph) -> None:
    if graph.mesh.size > MAX_RANKS:
        raise mistake(f"the mesh has {graph.mesh.size} ranks, more than {MAX_RANKS}")
    if len(graph.nodes) > MAX_NODES:
        raise mistake(f"the graph has {len(graph.nodes)} nodes, more than {MAX_NODES}")


def _check_node(node: Node, types: dict[NodeId, TensorType], mesh: Mesh) -> None:
    if node.id in types:
        raise mistake("there is a node of this id already")
    _check_type(node.type)
    operands: list[TensorType] = []
    for operand in node.operands:
        if operand not in types:
            raise mistake(f"operand {operand!r} is not a node before this one")
        operands.append(types[operand])
    type_of(node.op, tuple(operands), node.attrs, mesh=mesh, declared=node.type)


def _check_type(declared: TensorType) -> None:
    if declared.dtype not in KIND_OF:
        raise mistake(f"there is no dtype {declared.dtype!r}")
    if len(declared.shape) > MAX_DIMENSIONS:
        raise mistake(f"{len(declared.shape)} dimensions are more than {MAX_DIMENSIONS}")
    if any(type(size) is not int or not 0 <= size <= MAX_DIMENSION for size in declared.shape):
        raise mistake(f"sizes {list(declared.shape)} are not all within 0..{MAX_DIMENSION}")


def _check_name(node: Node, inputs: set[Attr]) -> None:
    if node.op != "input":
        return
    if node.attrs["name"] in inputs:
        raise mistake(f"there is an input {node.attrs['name']!r} already")
    inputs.add(node.attrs["name"])


def _check_outputs(graph: Graph, types: dict[NodeId, TensorType], inputs: set[Attr]) -> None:
    names: set[str] = set()
    for output in graph.outputs:
        if output.value not in types:
            raise mistake(f"output {output.name!r} is the node {output.value!r}, which does not exist")
        if output.name in names:
            raise mistake(f"there are two outputs {output.name!r}")
        if output.alias is not None and output.alias not in inputs:
            raise mistake(f"output {output.name!r} takes over input {output.alias!r}, which does not exist")
        names.add(output.name)


def _check_unrolled(graph: Graph) -> None:
    """Every rank's part is told by names."""
    if graph.mesh.size > 1 or not 2 <= graph.unrolled <= MOST_RANKS:
        raise mistake(f"unrolled over {graph.unrolled} ranks: 2 to {MOST_RANKS} on no mesh can be")
    names = [
        *(str(node.attrs["name"]) for node in graph.inputs()),
        *(output.name for output in graph.outputs),
    ]
    for name in names:
        found = unranked(name)
        if found is None or found[1] >= graph.unrolled:
            raise mistake(f"{name!r} is of none of the {graph.unrolled} ranks that are unrolled")
