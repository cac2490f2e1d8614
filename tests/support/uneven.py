"""Programs of ranks whose shards differ in size: one graph for each rank, as captures per rank are."""

from collections.abc import Callable, Sequence

from scalify.ir.build import GraphBuilder
from scalify.ir.graph import Graph, NodeId
from scalify.ir.mesh import SINGLE, Groups, Mesh
from scalify.load.unroll import unroll

PARTS = (3, 3, 3, 1)
ROWS, WIDE, HIDDEN = 2, 4, sum(PARTS)

PerRank = Callable[[int, GraphBuilder], None]


def ranks_of(count: int) -> Mesh:
    """A mesh of one axis."""
    return Mesh(axes=(("tp", count),))


def all_ranks(count: int) -> Groups:
    """One group of them all."""
    return (tuple(range(count)),)


def each(count: int, build: PerRank, *, mesh: Mesh | None = None) -> dict[int, Graph]:
    """What ``build`` makes of an empty graph for each rank."""
    graphs: dict[int, Graph] = {}
    for rank in range(count):
        graph = GraphBuilder("uneven", mesh=mesh or ranks_of(count))
        build(rank, graph)
        graphs[rank] = graph.graph()
    return graphs


def side_by_side(count: int, build: PerRank) -> Graph:
    """The ranks in one graph."""
    return unroll(each(count, build), ranks_of(count))


def on_one(build: Callable[[GraphBuilder], None]) -> Graph:
    """A baseline."""
    graph = GraphBuilder("whole", mesh=SINGLE)
    build(graph)
    return graph.graph()


def mlp(build: GraphBuilder, hidden: int, *, op: str = "relu") -> NodeId:
    """``act(x up) down``, of as many hidden units."""
    x = build.input("x", "f32", (ROWS, WIDE))
    up = build.input("up", "f32", (WIDE, hidden), role="parameter")
    down = build.input("down", "f32", (hidden, WIDE), role="parameter")
    active = build.add(op, build.add("einsum", x, up, spec="bi,io->bo"))
    return build.add("einsum", active, down, spec="bi,io->bo")


def whole_mlp() -> Graph:
    """The multi-layer perceptron on one device."""
    return on_one(lambda build: build.output("y", mlp(build, HIDDEN)))


def uneven_mlp(rank: int, build: GraphBuilder, parts: Sequence[int] = PARTS) -> None:
    """The same, its hidden units in parts."""
    partial = mlp(build, parts[rank])
    build.output("y", build.add("all_reduce", partial, kind="sum", groups=all_ranks(len(parts))))
