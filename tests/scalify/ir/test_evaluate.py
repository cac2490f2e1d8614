"""Running a graph: on all ranks at once, over the reals or in the dtypes that it declares."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from scalify_graphs import Array, every_node_an_output, graphs, random_inputs

from scalify.errors import ScalifyError
from scalify.ir.build import GraphBuilder
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import Attr, DType, Graph
from scalify.ir.mesh import Mesh, RankInt, groups_along
from scalify.ir.ops.dtypes import KIND_OF
from scalify.ir.ops.meaning.storage import rounded

GRID = Mesh(axes=(("dp", 2), ("tp", 2)))
HELD = {"float": "f", "int": "i", "bool": "b", "complex": "c"}


@given(graphs(), st.booleans())
def test_every_value_has_the_type_that_its_node_states(graph: Graph, declared: bool) -> None:
    results = evaluate(every_node_an_output(graph), random_inputs(graph, seed=0), declared=declared)
    for node in graph.nodes:
        assert len(results[node.id]) == graph.mesh.size
        for array in results[node.id]:
            assert (array.shape, array.dtype.kind) == (node.type.shape, HELD[KIND_OF[node.type.dtype]])


@given(graphs())
def test_dropping_values_after_their_last_use_changes_nothing(graph: Graph) -> None:
    inputs = random_inputs(graph, seed=1)
    few, all_of_them = evaluate(graph, inputs), evaluate(every_node_an_output(graph), inputs)
    for output in graph.outputs:
        for value, again in zip(few[output.name], all_of_them[output.value], strict=True):
            np.testing.assert_array_equal(value, again)


def _exchange(op: str, shape: tuple[int, ...], **attrs: Attr) -> tuple[list[Array], list[Array]]:
    """What four ranks hold before and after one collective."""
    build = GraphBuilder("g", mesh=GRID)
    build.output("y", build.add(op, build.input("x", "f64", shape), attrs=attrs))
    graph = build.graph()
    inputs = random_inputs(graph, seed=2)
    return inputs["x"], evaluate(graph, inputs)["y"]


TP, DP, ALL = (groups_along(GRID, names) for names in (("tp",), ("dp",), ("dp", "tp")))


def test_all_reduce_combines_within_each_group() -> None:
    x, y = _exchange("all_reduce", (3,), kind="sum", groups=TP)
    for rank, members in enumerate(((0, 1), (0, 1), (2, 3), (2, 3))):
        np.testing.assert_allclose(y[rank], x[members[0]] + x[members[1]])
    x, y = _exchange("all_reduce", (3,), kind="max", groups=DP)
    for rank, members in enumerate(((0, 2), (1, 3), (0, 2), (1, 3))):
        np.testing.assert_array_equal(y[rank], np.maximum(x[members[0]], x[members[1]]))
    x, y = _exchange("all_reduce", (3,), kind="avg", groups=ALL)
    for rank in range(4):
        np.testing.assert_allclose(y[rank], (x[0] + x[1] + x[2] + x[3]) / 4)


def test_all_gather_keeps_the_order_of_the_group() -> None:
    x, y = _exchange("all_gather", (2, 3), dim=1, groups=((2, 0), (3, 1)))
    for rank in (0, 2):
        np.testing.assert_array_equal(y[rank], np.concatenate([x[2], x[0]], axis=1))
    for rank in (1, 3):
        np.testing.assert_array_equal(y[rank], np.concatenate([x[3], x[1]], axis=1))


def test_reduce_scatter_gives_member_j_piece_j() -> None:
    x, y = _exchange("reduce_scatter", (4, 3), kind="sum", dim=0, groups=((2, 0), (3, 1)))
    np.testing.assert_allclose(y[2], (x[2] + x[0])[:2])
    np.testing.assert_allclose(y[0], (x[2] + x[0])[2:])
    np.testing.assert_allclose(y[3], (x[3] + x[1])[:2])
    np.testing.assert_allclose(y[1], (x[3] + x[1])[2:])


def test_all_to_all_sends_piece_j_to_member_j() -> None:
    x, y = _exchange("all_to_all", (2, 3), split_dim=0, concat_dim=1, groups=TP)
    np.testing.assert_array_equal(y[0], np.concatenate([x[0][:1], x[1][:1]], axis=1))
    np.testing.assert_array_equal(y[1], np.concatenate([x[0][1:], x[1][1:]], axis=1))
    np.testing.assert_array_equal(y[3], np.concatenate([x[2][1:], x[3][1:]], axis=1))


def test_permute_leaves_zeros_where_nothing_is_sent() -> None:
    x, y = _exchange("permute", (3,), pairs=((0, 1), (1, 2)))
    np.testing.assert_array_equal(y[1], x[0])
    np.testing.assert_array_equal(y[2], x[1])
    np.testing.assert_array_equal(y[0], np.zeros(3))
    np.testing.assert_array_equal(y[3], np.zeros(3))


def test_broadcast_from_counts_its_root_within_the_group() -> None:
    x, y = _exchange("broadcast_from", (3,), root=1, groups=((2, 0), (1, 3)))
    for rank, source in enumerate((0, 3, 0, 3)):
        np.testing.assert_array_equal(y[rank], x[source])


def test_what_depends_on_the_rank_differs_between_ranks() -> None:
    build = GraphBuilder("g", mesh=GRID)
    x = build.input("x", "f64", (8,))
    start = RankInt(base=0, terms=((1, 2, 2), (2, 2, 4)))
    limit = RankInt(base=2, terms=((1, 2, 2), (2, 2, 4)))
    own = build.add("slice", x, starts=(start,), limits=(limit,), steps=(1,))
    build.output("own", own)
    build.output("back", build.add("update_slice", x, build.add("neg", own), starts=(start,)))
    build.output("rank", build.add("rank", stride=2, size=2))
    build.output("constant", build.constant((RankInt(base=5, terms=((1, 2, 10),)), 7), "i64", (2,)))
    values = np.arange(8.0)
    results = evaluate(build.graph(), {"x": values})
    for rank in range(4):
        np.testing.assert_array_equal(results["own"][rank], values[2 * rank : 2 * rank + 2])
        signs = np.where(np.arange(8) // 2 == rank, -1.0, 1.0)
        np.testing.assert_array_equal(results["back"][rank], values * signs)
        assert results["rank"][rank] == rank // 2
        np.testing.assert_array_equal(results["constant"][rank], [5 + 10 * (rank % 2), 7])


def test_ranks_with_the_same_operands_share_one_result() -> None:
    build = GraphBuilder("g", mesh=GRID)
    build.output("y", build.add("neg", build.input("x", "f64", (2,))))
    first, *others = evaluate(build.graph(), {"x": np.ones(2)})["y"]
    assert all(other is first for other in others)


def test_inputs_are_not_written_to() -> None:
    build = GraphBuilder("g")
    x = build.input("x", "f64", (2,))
    build.output("y", build.add("update_slice", x, build.constant(0.0, "f64", (1,)), starts=(0,)))
    values = np.ones(2)
    evaluate(build.graph(), {"x": values})
    np.testing.assert_array_equal(values, [1, 1])


def _one_node(op: str, dtype: DType = "f32", **attrs: Attr) -> Graph:
    build = GraphBuilder("g")
    build.output("y", build.add(op, dtype=dtype, shape=(2,), attrs=attrs))
    return build.graph()


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (_one_node("opaque", target="my::op", config=""), r"\(opaque\) at .* cannot be run: 'my::op'"),
        (_one_node("random", key="k", kind="uniform"), r"\(random\) at .* cannot be run: 'random'"),
        (_one_node("constant", digest="00"), r"the values of a constant f32\[2\] are not in the graph"),
        (_one_node("input", name="x", role="input"), "no value is given for input 'x'"),
    ],
)
def test_what_cannot_be_run_is_named(graph: Graph, message: str) -> None:
    with pytest.raises(ScalifyError, match=message):
        evaluate(graph, {})


@pytest.mark.parametrize(
    ("given_x", "message"),
    [(np.ones(3), r"has shape \[3\], not \[2\]"), ([np.ones(2)] * 2, "is given for 2 ranks of 1")],
)
def test_inputs_that_do_not_fit_are_refused(given_x: Array, message: str) -> None:
    with pytest.raises(ScalifyError, match=message):
        evaluate(_one_node("input", name="x", role="input"), {"x": given_x})


def test_indices_out_of_range_are_refused() -> None:
    build = GraphBuilder("g")
    table, index = build.input("table", "f32", (4, 2)), build.input("index", "i64", (1,))
    build.output("y", build.add("take", table, index, axis=0))
    with pytest.raises(ScalifyError, match=r"take is asked for index 4\.\.4 among 4"):
        evaluate(build.graph(), {"table": np.ones((4, 2)), "index": np.array([4])})


def test_declared_dtypes_round_after_every_node() -> None:
    build = GraphBuilder("g")
    x = build.input("x", "f16", ())
    big = build.constant(2048.0, "f16")
    build.output("y", build.add("sub", build.add("add", x, big), big))
    values = {"x": np.asarray(1.0)}
    assert evaluate(build.graph(), values)["y"][0] == 1.0
    assert evaluate(build.graph(), values, declared=True)["y"][0] == 0.0


TORCH_DTYPES: dict[DType, torch.dtype] = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f8e4m3": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
    "i8": torch.int8,
    "u8": torch.uint8,
    "i32": torch.int32,
}


@given(st.sampled_from(("f32", "f16", "bf16", "f8e4m3", "f8e5m2")), st.floats(width=32))
def test_rounding_is_that_of_torch(dtype: DType, value: float) -> None:
    assume(dtype != "f8e4m3" or not abs(value) > 448)  # releases of PyTorch differ beyond
    with np.errstate(over="ignore"):
        ours = rounded(np.asarray([value]), dtype)
    theirs = torch.tensor([value], dtype=torch.float32).to(TORCH_DTYPES[dtype]).to(torch.float64).numpy()
    np.testing.assert_array_equal(ours, theirs)


def test_what_is_too_great_for_eight_bits_saturates() -> None:
    ours = rounded(np.asarray([1e9, -np.inf, 470.0]), "f8e4m3")
    np.testing.assert_array_equal(ours, [448, -448, 448])


@given(st.sampled_from(("i8", "u8", "i32")), st.integers(-(2**40), 2**40))
def test_wrapping_is_that_of_torch(dtype: DType, value: int) -> None:
    ours = rounded(np.asarray([value]), dtype)
    theirs = torch.tensor([value]).to(TORCH_DTYPES[dtype]).to(torch.int64).numpy()
    np.testing.assert_array_equal(ours, theirs)
