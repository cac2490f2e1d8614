"""Well-formedness: every way to be wrong has its own message, with node, op and line."""

import time
from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from scalify_graphs import graphs

from scalify.errors import InvalidGraph
from scalify.ir.build import GraphBuilder
from scalify.ir.check import MAX_RANKS, check
from scalify.ir.graph import Attr, DType, Graph, Node, NodeId, Output, Site, TensorType
from scalify.ir.mesh import SINGLE, Mesh, RankInt
from scalify.ir.ops.shapes import MAX_ENUMERATED_RANKS

TP2 = Mesh(axes=(("tp", 2),))
F4 = TensorType("f32", (4,))
X = Node(id=NodeId("x"), op="input", attrs=MappingProxyType({"name": "x", "role": "input"}), type=F4)


def _node(op: str, *operands: str, type: TensorType = F4, id: str = "y", **attrs: Attr) -> Node:
    return Node(
        id=NodeId(id),
        op=op,
        operands=tuple(map(NodeId, operands)),
        attrs=MappingProxyType(attrs),
        type=type,
        site=Site("model.py", 7, "forward"),
    )


def _graph(*nodes: Node, outputs: tuple[Output, ...] = (), mesh: Mesh = TP2) -> Graph:
    return Graph(name="g", nodes=(X, *nodes), outputs=outputs, mesh=mesh)


@given(graphs())
def test_what_the_builder_makes_is_well_formed(graph: Graph) -> None:
    check(graph)


@given(graphs())
@settings(max_examples=30)
def test_a_graph_backwards_is_not(graph: Graph) -> None:
    if any(node.operands for node in graph.nodes):
        with pytest.raises(InvalidGraph, match="is not a node before this one"):
            check(replace(graph, nodes=graph.nodes[::-1]))


def _digit(base: int, factor: int, size: int = 2) -> RankInt:
    return RankInt(base=base, terms=((1, size, factor),))


WRONG = {
    "unknown op": (_node("matmul", "x", "x"), "there is no op 'matmul'"),
    "arity": (_node("neg", "x", "x"), "neg takes 1 operands, not 2"),
    "too few": (_node("concat", axis=0), "concat takes at least 1 operands, not 0"),
    "too many": (_node("rms_norm", "x", "x", "x", axes=(0,), eps=0.1), "rms_norm takes 1 to 2 operands"),
    "missing attribute": (_node("softmax", "x"), "softmax needs the attribute 'axis'"),
    "strange attribute": (_node("neg", "x", axis=1), "neg has no attribute 'axis'; it has: none"),
    "kind of attribute": (_node("softmax", "x", axis=0.5), "'axis' of softmax is 0.5, not of kind 'int'"),
    "bool for int": (_node("softmax", "x", axis=True), "is True, not of kind 'int'"),
    "choice": (_node("all_reduce", "x", kind="mul", groups=((0, 1),)), "is 'mul', none of sum, avg, max"),
    "operand unknown": (_node("neg", "z"), "operand 'z' is not a node before this one"),
    "operand itself": (_node("neg", "y"), "operand 'y' is not a node before this one"),
    "same id": (_node("neg", "x", id="x"), "there is a node of this id already"),
    "same input": (_node("input", name="x", role="input"), "there is an input 'x' already"),
    "shape": (_node("neg", "x", type=TensorType("f32", (5,))), r"neg has shape \[4\], but \[5\] is stated"),
    "kind": (_node("neg", "x", type=TensorType("i64", (4,))), "neg gives float, but i64 is stated"),
    "negative size": (_node("iota", axis=0, type=TensorType("i64", (-1,))), "are not all within"),
    "huge size": (_node("iota", axis=0, type=TensorType("i64", (2**60,))), "are not all within"),
    "dimensions": (_node("iota", axis=0, type=TensorType("i64", (1,) * 40)), "40 dimensions are more than"),
    "no group": (_node("all_reduce", "x", kind="sum", groups=()), "groups of all_reduce are empty"),
    "uneven groups": (_node("all_reduce", "x", kind="sum", groups=((0, 1), (1,))), "have different sizes"),
    "rank left out": (_node("all_reduce", "x", kind="sum", groups=((0,),)), "not a partition of the 2 ranks"),
    "rank twice": (_node("all_reduce", "x", kind="sum", groups=((0, 0),)), "not a partition of the 2 ranks"),
    "source twice": (_node("permute", "x", pairs=((0, 1), (0, 0))), "a source or a target twice"),
    "target twice": (_node("permute", "x", pairs=((0, 1), (1, 1))), "a source or a target twice"),
    "no such rank": (_node("permute", "x", pairs=((0, 2),)), r"a rank outside 0\.\.1"),
    "root": (_node("broadcast_from", "x", root=2, groups=((0, 1),)), "root 2 of broadcast_from"),
    "slice on rank 1": (
        _node("slice", "x", starts=(_digit(0, 3),), limits=(_digit(2, 3),), steps=(1,)),
        "along dimension 0 is outside",
    ),
    "slice length": (
        _node("slice", "x", starts=(0,), limits=(_digit(1, 3),), steps=(1,)),
        "the length of slice along dimension 0 depends on the rank",
    ),
    "update on rank 1": (_node("update_slice", "x", "x", starts=(_digit(0, 1),)), "is outside 0..4"),
    "too many terms": (
        _node("update_slice", "x", "x", starts=(RankInt(base=0, terms=((1, 2, 1),) * 17),)),
        "not of kind 'rank integers'",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("node", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_node_is_named_with_its_line(node: Node, message: str) -> None:
    with pytest.raises(InvalidGraph, match=message) as error:
        check(_graph(node))
    assert str(error.value).startswith(f"node {node.id!r} ({node.op}) at model.py:7: ")
    assert error.value.hint


def test_an_unknown_dtype_is_refused() -> None:
    strange: DType = "f" + "4"  # pyright: ignore[reportAssignmentType] -- a file may say anything
    with pytest.raises(InvalidGraph, match="there is no dtype 'f4'"):
        check(_graph(_node("neg", "x", type=TensorType(strange, (4,)))))


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ((Output(name="y", value=NodeId("y")),), "output 'y' is the node 'y', which does not exist"),
        ((Output(name="y", value=X.id), Output(name="y", value=X.id)), "there are two outputs 'y'"),
        ((Output(name="y", value=X.id, alias="k"),), "takes over input 'k', which does not exist"),
    ],
)
def test_wrong_outputs_are_refused(outputs: tuple[Output, ...], message: str) -> None:
    with pytest.raises(InvalidGraph, match=message):
        check(_graph(outputs=outputs))


def test_too_many_ranks_are_refused() -> None:
    with pytest.raises(InvalidGraph, match="ranks, more than"):
        check(_graph(mesh=Mesh(axes=(("dp", MAX_RANKS), ("tp", 2)))))


def test_a_digit_beyond_the_mesh_counts_only_as_far_as_ranks_go() -> None:
    """Rank // 1 % 64 on two ranks is 0 or 1, so the slice starts at 0 or 1."""
    wide = _node(
        "slice",
        "x",
        starts=(_digit(0, 1, size=64),),
        limits=(_digit(3, 1, size=64),),
        steps=(1,),
        type=TensorType("f32", (3,)),
    )
    check(_graph(wide))


def test_digits_that_depend_on_each_other_are_looked_at_rank_by_rank() -> None:
    """On four ranks, rank % 4 - rank % 2 is 0, 0, 2, 2: bounds of each digit alone would say -1..3."""
    start = RankInt(base=0, terms=((1, 4, 1), (1, 2, -1)))
    limit = replace(start, base=2)
    node = _node("slice", "x", starts=(start,), limits=(limit,), steps=(1,), type=TensorType("f32", (2,)))
    check(_graph(node, mesh=Mesh(axes=(("tp", 4),))))
    with pytest.raises(InvalidGraph, match="is outside"):
        check(_graph(node, mesh=Mesh(axes=(("tp", MAX_ENUMERATED_RANKS * 2),))))


def test_slices_of_a_large_mesh_are_checked_digit_by_digit() -> None:
    mesh = Mesh(axes=(("dp", 2**14), ("tp", 4)))
    start = RankInt(base=0, terms=((1, 4, 1),))
    one = TensorType("f32", (1,))
    node = _node("slice", "x", starts=(start,), limits=(replace(start, base=1),), steps=(1,), type=one)
    check(_graph(node, mesh=mesh))


def test_time_grows_with_the_nodes_and_nothing_recurses() -> None:
    site = Site("m.py", 1)
    build = GraphBuilder("deep")
    value = build.input("x", "f32", (4,))
    for _ in range(50_000):
        value = build.add("add", value, value, site=site)
    start_s = time.process_time()
    graph = build.graph()
    assert time.process_time() - start_s < 10
    assert len(graph.nodes) == 50_001


def test_one_device_has_groups_of_one() -> None:
    check(_graph(_node("all_reduce", "x", kind="sum", groups=((0,),)), mesh=SINGLE))
