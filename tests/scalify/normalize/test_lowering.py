"""Lowering keeps meaning: of every op, in many settings, the terms mean in NumPy what the IR says."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from algebra_graphs import algebra_graph
from hypothesis import given, settings
from lowered_values import Array, Leaves, NodeBlocks
from op_cases import UNEXECUTABLE, OpCase, op_cases, values_for
from scalify_graphs import every_node_an_output, graphs, random_inputs

from scalify.ir.build import GraphBuilder
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import Graph, NodeId
from scalify.ir.mesh import Mesh
from scalify.ir.ops import OPS
from scalify.layout.digits import ZERO
from scalify.layout.maps import IndexMap, along
from scalify.normalize.lower import as_leaves, lower
from scalify.normalize.meaning import Values
from scalify.normalize.terms import Access, Terms


def meanings(graph: Graph, inputs: Mapping[str, Sequence[Array]]) -> dict[NodeId, Array]:
    """What the terms of every node mean, on all ranks."""
    terms = Terms()
    lowered = lower(graph.nodes, graph.mesh.size, as_leaves(graph, terms, ""), terms)
    values = Values(terms, Leaves(graph, inputs), NodeBlocks(graph))
    return {node: values.of(access) for node, access in lowered.accesses.items()}


def assert_same_meaning(graph: Graph, inputs: Mapping[str, Sequence[Array]]) -> None:
    shown = every_node_an_output(graph)
    expected = evaluate(shown, inputs)
    for node, value in meanings(shown, inputs).items():
        wanted = np.stack(expected[node])
        # Where the op itself is undefined (a softmax of nothing but minus infinity), terms may be anything.
        value = np.where(np.isnan(wanted), np.nan, value)
        np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-9, err_msg=f"{node} of {graph.nodes}")


@pytest.mark.parametrize("op", sorted(set(OPS) - UNEXECUTABLE))
def test_a_lowered_op_means_what_the_op_means(op: str) -> None:
    cases = list(op_cases(op))
    assert cases, f"no case of {op} in tests/support/op_cases.py"
    rng = np.random.default_rng(5)
    for case in cases:
        graph = case.graph()
        assert any(node.op == op for node in graph.nodes)
        assert_same_meaning(graph, values_for(graph, rng))


@settings(max_examples=150, derandomize=True, deadline=None)
@given(graphs())
def test_a_lowered_graph_means_what_the_graph_means(graph: Graph) -> None:
    assert_same_meaning(graph, random_inputs(graph, seed=3))


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_what_is_rewritten_means_the_same(first: int) -> None:
    for seed in range(first, first + 20):
        graph = algebra_graph(seed)
        assert_same_meaning(graph, values_for(graph, np.random.default_rng(seed)))


def test_a_wrong_lowering_is_noticed() -> None:
    """The comparison can fail: a minimum is not what a maximum's terms mean."""
    case = next(op_cases("max"))
    wrong = next(op_cases("min")).graph()
    inputs = values_for(wrong, np.random.default_rng(0))
    value = meanings(wrong, inputs)[wrong.outputs[0].value]
    right = evaluate(OpCase(op="max", mesh=case.mesh, make=case.make).graph(), inputs)["y"]
    assert not np.allclose(value, np.stack(right))


TP2 = Mesh(axes=(("tp", 2),))


def _term_of(build: GraphBuilder, node: NodeId, terms: Terms) -> tuple[object, object]:
    graph = build.graph()
    lowered = lower(graph.nodes, graph.mesh.size, as_leaves(graph, terms, ""), terms)
    return lowered.accesses[node].term, lowered.accesses[node].index


def test_random_draws_are_equal_only_to_themselves() -> None:
    terms = Terms()
    build = GraphBuilder("draws", mesh=TP2)
    first, again, other = (
        build.add("random", shape=(2,), dtype="f32", key=key, kind="normal") for key in ("k", "k", "l")
    )
    assert _term_of(build, first, terms) == _term_of(build, again, terms)
    assert _term_of(build, first, terms) != _term_of(build, other, terms)
    index = lower(build.graph().nodes, 2, {}, terms).accesses[first].index
    assert 0 in index.reads(), "ranks draw apart"


@pytest.mark.parametrize(
    ("change", "equal"),
    [({}, True), ({"target": "g"}, False), ({"config": "2"}, False)],
)
def test_opaque_ops_are_equal_on_equal_operands(change: dict[str, str], equal: bool) -> None:
    terms = Terms()
    build = GraphBuilder("opaque")
    x = build.input("x", "f32", (2, 3))
    attrs = {"target": "f", "config": "1"}
    first = build.add("opaque", x, shape=(3,), dtype="f32", attrs=attrs)
    second = build.add("opaque", x, shape=(3,), dtype="f32", attrs={**attrs, **change})
    assert (_term_of(build, first, terms) == _term_of(build, second, terms)) == equal


def test_opaque_ops_on_other_types_are_other_ops() -> None:
    terms = Terms()
    build = GraphBuilder("bits")
    x = build.input("x", "f32", (2,))
    narrow = build.add("cast", x, dtype="bf16")
    first, second = (
        build.add("opaque", operand, shape=(2,), dtype="i32", target="bits") for operand in (x, narrow)
    )
    assert _term_of(build, x, terms) == _term_of(build, narrow, terms)
    assert _term_of(build, first, terms) != _term_of(build, second, terms)


def test_an_opaque_op_without_operands_may_depend_on_the_rank() -> None:
    terms = Terms()
    build = GraphBuilder("opaque", mesh=TP2)
    node = build.add("opaque", shape=(2,), dtype="f32", target="f")
    assert 0 in lower(build.graph().nodes, 2, {}, terms).accesses[node].index.reads()


@pytest.mark.parametrize(
    ("target", "config", "depends"),
    [
        ("_c10d_functional.all_gather_into_tensor.default", "", True),
        ("vllm::all_reduce", "", True),
        ("symm_mem.tile_reduce.default", "", True),
        ("torch.distributed.isend", "", True),
        ("hlo.custom-call.x", "rank-dependent of 4x1", True),
        ("hlo.custom-call.x", "", False),
        ("aten.sendrecv_like", "", False),
    ],
)
def test_what_may_communicate_depends_on_all_ranks(target: str, config: str, depends: bool) -> None:
    """Of a value that all ranks hold, an unknown exchange may give each rank something else."""
    terms = Terms()
    build = GraphBuilder("opaque", mesh=TP2)
    same = build.constant(3.0, "f32", (4,))
    node = build.add("opaque", same, shape=(4,), dtype="f32", target=target, config=config)
    index = lower(build.graph().nodes, 2, {}, terms).accesses[node].index
    assert (0 in index.reads()) == depends


def test_blocks_of_other_shapes_are_other_operands() -> None:
    """Two operands that are numbers everywhere read nothing: only their shapes tell them apart."""
    terms = Terms()
    build = GraphBuilder("blocks")
    number = build.constant(1.0, "f32")
    wide, flat = (build.add("broadcast", number, dims=(), shape=shape) for shape in ((2, 3), (2,)))
    scalar, line = number, build.add("broadcast", number, dims=(), shape=(3,))
    first = build.add("opaque", wide, scalar, shape=(2,), dtype="f32", target="f")
    second = build.add("opaque", flat, line, shape=(2,), dtype="f32", target="f")
    assert _term_of(build, first, terms) != _term_of(build, second, terms)


ALL_TRUE = np.ones((4, 3), dtype=bool)


def _added_to(build: GraphBuilder, op: str, x: NodeId) -> NodeId:
    rows = build.constant(0, "i64", (4, 3))
    if op == "scatter":
        return build.add("scatter", x, rows, x, axis=0, mode="add")
    if op == "index_put":
        return build.add("index_put", x, x, build.constant(0, "i64", (4,)), mode="add")
    crossed = ((0, 3), (1, 2))
    return build.add("all_reduce", x, kind="sum", groups=crossed)


@pytest.mark.parametrize("op", ["scatter", "index_put", "all_reduce"])
def test_what_is_added_of_truth_values_is_not_what_is_added_of_numbers(op: str) -> None:
    """``True + True`` is true, ``1 + 1`` is 2: an op that is no formula here must not be taken for one."""
    build = GraphBuilder("kinds", mesh=Mesh(axes=(("tp", 4),)))
    truths = build.input("x", "bool", (4, 3))
    either = build.add("cast", _added_to(build, op, truths), dtype="f32")
    count = _added_to(build, op, build.add("cast", truths, dtype="f32"))
    build.output("either", either)
    build.output("count", count)
    values = evaluate(build.graph(), {"x": ALL_TRUE})
    assert not np.allclose(values["either"], values["count"])
    terms = Terms()
    assert _term_of(build, either, terms) != _term_of(build, count, terms)


def test_the_logarithm_of_a_complex_exponential_forgets_whole_turns() -> None:
    build = GraphBuilder("turns")
    angle = build.input("angle", "c64", (3,))
    undone = build.add("log", build.add("exp", angle))
    build.output("y", undone)
    assert_same_meaning(build.graph(), {"angle": [np.array([1j, 4j, -9j])]})
    terms = Terms()
    assert _term_of(build, undone, terms) != _term_of(build, angle, terms)


def test_a_complex_number_is_false_only_at_zero() -> None:
    build = GraphBuilder("truth")
    z = build.input("z", "c64", (3,))
    build.output("y", build.add("cast", z, dtype="bool"))
    inputs = {"z": [np.array([2j, 0j, 1 + 0j])]}
    assert evaluate(build.graph(), inputs)["y"][0].tolist() == [True, False, True]
    assert_same_meaning(build.graph(), inputs)


def test_a_choice_by_whether_any_of_a_row_holds() -> None:
    build = GraphBuilder("rows")
    x, held = build.input("x", "f32", (2, 3)), build.input("held", "bool", (2, 3))
    some = build.add("reduce", held, kind="any", axes=(1,), keepdims=True)
    build.output("y", build.add("where", some, build.constant(0.0, "f32"), x))
    inputs = {"x": [np.arange(6.0).reshape(2, 3)], "held": [np.array([[True, False, False], [False] * 3])]}
    assert_same_meaning(build.graph(), inputs)


def test_a_diagonal_that_is_looked_up_says_nothing_of_the_rest() -> None:
    terms = Terms()
    rows = terms.leaf("rows", (1, 2, 2))
    diagonal = IndexMap((1, 2), (1, 2, 2), (ZERO, along(1, 2), along(1, 2)))
    terms.assume_in_range(Access(diagonal, rows.term), 3)
    assert not terms.in_range
    terms.assume_in_range(rows, 3)
    assert terms.in_range == {(rows.term, 3)}


@pytest.mark.parametrize(("first", "rows"), [(0, 3), (3, 3), (2, 1), (1, 4)])
@pytest.mark.parametrize("masked", ["both", "index", "value"])
def test_what_a_part_of_a_table_is_added_counts_only_where_it_is_masked(
    first: int, rows: int, masked: str
) -> None:
    """The gradient of a part of an embedding, with its masks, and with one of them forgotten."""
    build = GraphBuilder("gradient")
    index, grad = build.input("index", "i64", (5,)), build.input("grad", "f32", (5, 2))
    moved = build.add("sub", index, build.constant(first, "i64"))
    not_before = build.add("ge", moved, build.constant(0, "i64"))
    inside = build.add("and", not_before, build.add("lt", moved, build.constant(rows, "i64")))
    nowhere = build.constant(0, "i64")
    place = (
        build.add("where", inside, moved, nowhere)
        if masked != "value"
        else build.add("clamp", nowhere, moved, build.constant(rows - 1, "i64"))
    )
    column = build.add("reshape", inside, shape=(5, 1))
    value = build.add("where", column, grad, build.constant(0.0, "f32")) if masked != "index" else grad
    table = build.constant(0.0, "f32", (rows, 2))
    build.output("y", build.add("index_put", table, value, place, mode="add"))
    rng = np.random.default_rng(first)
    for _ in range(20):
        assert_same_meaning(
            build.graph(), {"index": [rng.integers(0, 6, 5)], "grad": [rng.standard_normal((5, 2))]}
        )


@pytest.mark.parametrize("kind", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_fold_of_what_is_put_together_is_that_of_its_pieces(kind: str, axis: int) -> None:
    """Scores of keys from two places, some masked by position, folded over the keys and over the rest."""
    build = GraphBuilder("pieces")
    q = build.input("q", "f32", (3, 2))
    keys = build.add("concat", build.input("a", "f32", (2, 2)), build.input("b", "f32", (3, 2)), axis=0)
    scores = build.add("einsum", q, keys, spec="td,sd->ts")
    row, column = (build.add("iota", axis=each, shape=(3, 5)) for each in (0, 1))
    seen = build.add("le", column, build.add("add", row, build.constant(1, "i64")))
    weights = build.add("exp", build.add("where", seen, scores, build.constant(-1.0, "f32")))
    shifted = build.add("add", weights, build.add("mul", weights, scores))
    build.output("y", build.add("reduce", shifted, kind=kind, axes=(axis,), keepdims=False))
    graph = build.graph()
    assert_same_meaning(graph, random_inputs(graph, seed=axis))
