"""What it takes to run a program in NumPy, estimated beforehand: memory at its peak, and multiplications."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from scalify.ir.graph import Graph, Node, NodeId
from scalify.refute.run import late
from scalify.refute.tiles import weights_of

BYTES_EACH = 8
OPERATIONS_PER_S = 1e9
"""What one core does at least, of products and of elements made."""

VIEWS = frozenset({"transpose", "broadcast", "slice", "reshape", "cast"})


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one run on all ranks."""

    memory_bytes: int
    duration_s: float


def cost(graph: Graph) -> Cost:
    """Replicated values are counted on every rank, though they are computed once: this is an upper bound."""
    ordered = late(graph)
    last: dict[NodeId, int] = {}
    for place, node in enumerate(ordered.nodes):
        last.update(dict.fromkeys(node.operands, place))
    last.update(dict.fromkeys((output.value for output in graph.outputs), len(ordered.nodes)))
    dropped: dict[int, list[NodeId]] = {}
    for each, place in last.items():
        dropped.setdefault(place, []).append(each)
    shapes = {node.id: node.type.shape for node in graph.nodes}
    in_pieces = weights_of(graph)
    held: dict[NodeId, int] = {}
    live = peak = 0
    operations = 0.0
    for place, node in enumerate(ordered.nodes):
        held[node.id] = 0 if node.id in in_pieces else _bytes(node) * graph.mesh.size
        live += held[node.id]
        peak = max(peak, live)
        operations += graph.mesh.size * _operations(node, [shapes[operand] for operand in node.operands])
        live -= sum(held.pop(each, 0) for each in dropped.get(place, ()))
    return Cost(memory_bytes=peak, duration_s=operations / OPERATIONS_PER_S)


def _bytes(node: Node) -> int:
    return 0 if node.op in VIEWS else BYTES_EACH * prod(node.type.shape)


def products(einsum: Node, shapes: Sequence[tuple[int, ...]]) -> int:
    """How many products an einsum takes, from the shapes of its operands."""
    left, _, _ = str(einsum.attrs["spec"]).partition("->")
    sizes = {
        letter: size
        for letters, shape in zip(left.split(","), shapes, strict=True)
        for letter, size in zip(letters, shape, strict=True)
    }
    return prod(sizes.values())


def _operations(node: Node, shapes: list[tuple[int, ...]]) -> float:
    elements = float(prod(node.type.shape))
    if node.op == "einsum":
        return float(products(node, shapes))
    if node.op == "attention":
        return 2.0 * elements * shapes[1][-2]
    return elements * (3.0 if node.operands else 10.0)
