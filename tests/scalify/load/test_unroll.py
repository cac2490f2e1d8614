"""Ranks side by side: collectives that meet, and those that do not."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uneven import PARTS, all_ranks, each, ranks_of, side_by_side, uneven_mlp

from scalify.errors import InvalidGraph
from scalify.ir.build import GraphBuilder
from scalify.ir.check import check
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import DType, Graph, Node, NodeId, TensorType
from scalify.ir.mesh import Mesh, RankInt, groups_along
from scalify.ir.text import parse, to_text
from scalify.load.together import together
from scalify.load.unroll import unroll

BOTH = Mesh(axes=(("dp", 2), ("tp", 2)))
Step = Callable[[GraphBuilder, NodeId], NodeId]


def exchanging(step: Step, *, dtype: DType = "f32", mesh: Mesh = BOTH) -> Graph:
    """What every rank runs: something of its own, a step, and something more."""
    build = GraphBuilder("exchange", mesh=mesh)
    x = build.input("x", dtype, (4, 4), role="parameter", position=0)
    y = step(build, build.add("mul", x, x) if dtype != "bool" else x)
    build.output("y", y)
    build.output("twice", build.add("concat", y, y, axis=0), alias="x")
    return build.graph()


def combining(kind: str) -> Step:
    return lambda build, x: build.add("all_reduce", x, kind=kind, groups=groups_along(BOTH, ("dp",)))


def own_rows(build: GraphBuilder, x: NodeId) -> NodeId:
    start = RankInt(base=0, terms=((1, 4, 1),))
    return build.add("slice", x, starts=(start, 0), limits=(replace(start, base=1), 4), steps=(1, 1))


def own_number(build: GraphBuilder, x: NodeId) -> NodeId:
    return build.add("add", x, build.add("cast", build.add("rank", stride=2, size=2), dtype="f32"))


STEPS: dict[str, Step] = {
    **{f"all_reduce {kind}": combining(kind) for kind in ("sum", "avg", "max", "min", "prod")},
    "all_gather": lambda build, x: build.add("all_gather", x, dim=1, groups=groups_along(BOTH, ("tp",))),
    "reduce_scatter": lambda build, x: build.add(
        "reduce_scatter", x, kind="sum", dim=1, groups=groups_along(BOTH, ("dp",))
    ),
    "all_to_all": lambda build, x: build.add(
        "all_to_all", x, split_dim=0, concat_dim=1, groups=groups_along(BOTH, ("dp", "tp"))
    ),
    "broadcast_from": lambda build, x: build.add(
        "broadcast_from", x, root=1, groups=groups_along(BOTH, ("tp",))
    ),
    "permute": lambda build, x: build.add("permute", x, pairs=((0, 1), (1, 2), (3, 0))),
    "starts of shards": own_rows,
    "the rank's number": own_number,
}


@pytest.mark.parametrize("name", STEPS)
def test_unrolled_ranks_compute_what_the_ranks_compute(name: str) -> None:
    graph = exchanging(STEPS[name])
    _check_same_values(graph, [np.random.default_rng(rank).normal(size=(4, 4)) for rank in range(4)])


@pytest.mark.parametrize("kind", ["sum", "avg", "max", "min", "prod"])
@pytest.mark.parametrize("dtype", ["bool", "i32"])
def test_truth_values_and_integers_are_combined_as_on_ranks(kind: str, dtype: DType) -> None:
    rng = np.random.default_rng(0)
    drawn = [rng.integers(0, 2 if dtype == "bool" else 9, size=(4, 4)) for _ in range(4)]
    values = [one.astype(bool) if dtype == "bool" else one for one in drawn]
    _check_same_values(exchanging(combining(kind), dtype=dtype), values)


def _check_same_values(graph: Graph, values: list[np.ndarray]) -> None:
    expected = evaluate(graph, {"x": values})
    unrolled = unroll(dict.fromkeys(range(4), graph), graph.mesh)

    assert parse(to_text(unrolled)) == unrolled
    assert {output.alias for output in unrolled.outputs} == {None, *(f"x@rank{rank}" for rank in range(4))}
    found = evaluate(unrolled, {f"x@rank{rank}": [value] for rank, value in enumerate(values)})
    for name, of_ranks in expected.items():
        for rank, value in enumerate(of_ranks):
            np.testing.assert_allclose(found[f"{name}@rank{rank}"][0], value, rtol=1e-12)


@settings(max_examples=20)
@given(st.lists(st.integers(1, 4), min_size=2, max_size=5))
def test_an_uneven_perceptron_computes_the_whole_one(parts: list[int]) -> None:
    hidden = sum(parts)
    rng = np.random.default_rng(hidden)
    x, up, down = rng.normal(size=(2, 4)), rng.normal(size=(4, hidden)), rng.normal(size=(hidden, 4))
    unrolled = side_by_side(len(parts), lambda rank, build: uneven_mlp(rank, build, parts))
    ends = np.cumsum(parts)[:-1]
    inputs = {f"x@rank{rank}": [x] for rank in range(len(parts))}
    for rank, (rows, columns) in enumerate(
        zip(np.split(down, ends), np.split(up, ends, axis=1), strict=True)
    ):
        inputs |= {f"down@rank{rank}": [rows], f"up@rank{rank}": [columns]}

    for (value,) in evaluate(unrolled, inputs).values():
        np.testing.assert_allclose(value, np.maximum(x @ up, 0) @ down, rtol=1e-9)


def test_names_sites_and_scopes_are_kept() -> None:
    def rank_of(rank: int, build: GraphBuilder) -> None:
        with build.scope("layers.0"):
            uneven_mlp(rank, build)

    graph = side_by_side(4, rank_of)

    assert graph.unrolled == 4
    assert graph.mesh.size == 1
    assert [node.attrs["name"] for node in graph.inputs()][:4] == [
        "x@rank0",
        "up@rank0",
        "down@rank0",
        "x@rank1",
    ]
    assert [output.name for output in graph.outputs] == [f"y@rank{rank}" for rank in range(4)]
    assert all(node.site is not None and node.scope == "layers.0" for node in graph.nodes)
    assert all(node.id.startswith("rank") for node in graph.nodes)


def test_pieces_of_a_gather_may_be_of_different_sizes_if_the_ranks_say_so() -> None:
    """No rank's own graph type-checks then, so it is for programs that know the sizes of the others."""

    def rank_of(rank: int, total: int) -> Graph:
        build = GraphBuilder("rows", mesh=ranks_of(2))
        x = build.input("x", "f32", (2 - rank, 4))
        build.output("y", build.add("all_gather", x, dim=0, groups=all_ranks(2), id="gathered"))
        return _retyped(build.graph(), "gathered", (total, 4))

    graph = unroll({rank: rank_of(rank, 3) for rank in range(2)}, ranks_of(2))

    rows = np.arange(12.0).reshape(3, 4)
    found = evaluate(graph, {"x@rank0": [rows[:2]], "x@rank1": [rows[2:]]})
    for (value,) in found.values():
        np.testing.assert_array_equal(value, rows)
    with pytest.raises(InvalidGraph, match=r"4 elements along dimension 0, but all members bring 3"):
        unroll({rank: rank_of(rank, 4) for rank in range(2)}, ranks_of(2))


def test_parts_of_a_scatter_are_as_large_as_the_ranks_say() -> None:
    def rank_of(rank: int) -> Graph:
        build = GraphBuilder("rows", mesh=ranks_of(2))
        x = build.input("x", "f32", (4, 1))
        build.output(
            "y", build.add("reduce_scatter", x, dim=0, groups=all_ranks(2), kind="sum", id="scattered")
        )
        return _retyped(build.graph(), "scattered", (3 - 2 * rank, 1))

    graph = unroll({rank: rank_of(rank) for rank in range(2)}, ranks_of(2))

    ones = np.arange(4.0).reshape(4, 1)
    found = evaluate(graph, {"x@rank0": [ones], "x@rank1": [ones]})
    assert [found[f"y@rank{rank}"][0].ravel().tolist() for rank in range(2)] == [[0, 2, 4], [6]]


def _retyped(graph: Graph, name: str, shape: tuple[int, ...]) -> Graph:
    def typed(node: Node) -> Node:
        return replace(node, type=TensorType("f32", shape)) if node.id == name else node

    return replace(graph, nodes=tuple(map(typed, graph.nodes)))


def test_collectives_that_do_not_meet_are_both_named() -> None:
    def other_kind(rank: int, build: GraphBuilder) -> None:
        x = build.input("x", "f32", (4,))
        build.output(
            "y", build.add("all_reduce", x, kind="max" if rank else "sum", groups=all_ranks(2), id="r")
        )

    with pytest.raises(InvalidGraph, match=r"rank 0's node 'r' .*:\d+ meets rank 1's node 'r'"):
        side_by_side(2, other_kind)

    def other_size(rank: int, build: GraphBuilder) -> None:
        x = build.input("x", "f32", (4 - rank,))
        build.output("y", build.add("all_reduce", x, groups=all_ranks(2), id="r"))

    with pytest.raises(InvalidGraph, match=r"brings \[4\], rank 1's node 'r' .* \[3\]"):
        side_by_side(2, other_size)

    def other_dtype(rank: int, build: GraphBuilder) -> None:
        x = build.input("x", "f64" if rank else "f32", (4,))
        build.output("y", build.add("all_reduce", x, groups=all_ranks(2)))

    with pytest.raises(InvalidGraph, match="brings"):
        side_by_side(2, other_dtype)


def test_a_rank_that_waits_for_nobody_is_named() -> None:
    def more(rank: int, build: GraphBuilder) -> None:
        x = build.add("all_reduce", build.input("x", "f32", (4,)), groups=all_ranks(2))
        build.output("y", x if rank else build.add("all_reduce", x, groups=all_ranks(2), id="last"))

    with pytest.raises(InvalidGraph, match=r"rank 0's node 'last' .* rank 1, which runs no more collectives"):
        side_by_side(2, more)

    def crossed(rank: int, build: GraphBuilder) -> None:
        """Everybody waits for somebody who waits for the next."""
        x = build.input("x", "f32", (4,))
        for number, axis in enumerate(("tp", "dp") if rank in (0, 3) else ("dp", "tp")):
            x = build.add("all_reduce", x, groups=groups_along(BOTH, (axis,)), id=f"r{number}")
        build.output("y", x)

    graphs = each(4, crossed, mesh=BOTH)
    with pytest.raises(InvalidGraph, match=r"rank \d's node 'r0' .* waits for rank \d, which waits in node"):
        unroll(graphs, BOTH)


def test_groups_of_other_ranks_are_refused() -> None:
    build = GraphBuilder("single")
    build.output("y", build.add("all_reduce", build.input("x", "f32", (4,)), groups=((0,),)))
    with pytest.raises(InvalidGraph, match="no group is of rank 1 of this mesh"):
        unroll(dict.fromkeys(range(2), build.graph()), ranks_of(2))


def test_what_ranks_draw_is_their_own() -> None:
    build = GraphBuilder("drawing", mesh=ranks_of(2))
    build.output("y", build.add("random", dtype="f32", shape=(2,), key="dropout", kind="uniform"))
    build.output("z", build.add("opaque", dtype="f32", shape=(2,), target="lib.seed", config=""))
    graph = unroll(dict.fromkeys(range(2), build.graph()), ranks_of(2))

    drawn = [node.attrs.get("key", node.attrs.get("config")) for node in graph.nodes]
    assert len(set(drawn)) == 4


def test_an_operation_that_may_be_a_collective_is_refused() -> None:
    build = GraphBuilder("custom", mesh=ranks_of(2))
    x = build.input("x", "f32", (2,))
    build.output("y", build.add("opaque", x, dtype="f32", shape=(2,), target="vllm.all_reduce.default"))
    with pytest.raises(InvalidGraph, match=r"'vllm\.all_reduce\.default' may be a collective"):
        unroll(dict.fromkeys(range(2), build.graph()), ranks_of(2))


def test_too_many_ranks_are_refused() -> None:
    build = GraphBuilder("one", mesh=ranks_of(65))
    build.output("y", build.input("x", "f32", (2,)))
    with pytest.raises(InvalidGraph, match="too many to be put side by side"):
        unroll(dict.fromkeys(range(65), build.graph()), ranks_of(65))


def test_ids_that_look_like_ours_do_not_clash() -> None:
    def rank_of(rank: int, build: GraphBuilder) -> None:
        x = build.input("x", "f32", (4,), role="parameter")
        y = build.add("all_reduce", x, kind="avg", groups=all_ranks(3), id="y")
        build.output("y", build.add("add", y, x, id="y.1"))

    check(side_by_side(3, rank_of))


def test_ranks_are_unrolled_only_where_they_do_not_merge() -> None:
    graph = exchanging(STEPS["all_gather"])
    assert together(dict.fromkeys(range(4), graph), BOTH) == graph
    assert together(each(4, uneven_mlp), ranks_of(4)).unrolled == len(PARTS)


def test_equal_ranks_that_never_meet_should_run_one_program() -> None:
    def other_op(rank: int, build: GraphBuilder) -> None:
        build.output("y", build.add("exp" if rank else "sin", build.input("x", "f32", (4,))))

    with pytest.raises(InvalidGraph, match="sin on rank 0 but exp on rank 1"):
        together(each(2, other_op), ranks_of(2))


def test_ranks_that_cannot_be_unrolled_say_both() -> None:
    def other_size(rank: int, build: GraphBuilder) -> None:
        x = build.input("x", "f32", (4 - rank,))
        build.output("y", build.add("all_reduce", x, groups=all_ranks(2), id="r"))

    with pytest.raises(
        InvalidGraph, match=r"run different programs: x .* cannot be put side by side: rank 0's"
    ):
        together(each(2, other_size), ranks_of(2))


@pytest.mark.parametrize("unrolled", [-1, 1, 2, 3, 65])
def test_an_unrolled_graph_says_of_which_rank_everything_is(unrolled: int) -> None:
    graph = replace(side_by_side(4, uneven_mlp), unrolled=unrolled)
    with pytest.raises(InvalidGraph, match="unrolled"):
        check(graph)


def test_stages_that_run_different_programs_stand_side_by_side() -> None:
    """Rank 0 runs the first half and sends, rank 1 receives and runs the second."""

    def stage(rank: int, build: GraphBuilder) -> None:
        x = build.input("x", "f32", (4,)) if rank == 0 else build.constant(0.0, "f32", (4,))
        sent = build.add("permute", build.add("exp", x) if rank == 0 else x, pairs=((0, 1),))
        if rank:
            build.output("y", build.add("sin", sent))

    graph = together(each(2, stage), ranks_of(2))

    x = np.arange(4.0)
    np.testing.assert_allclose(evaluate(graph, {"x@rank0": [x]})["y@rank1"][0], np.sin(np.exp(x)))
