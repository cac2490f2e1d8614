"""Lowering keeps meaning: of every op, in many settings, the terms mean in NumPy what the IR says."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from algebra_graphs import algebra_graph
from hypothesis import given, settings
from numpy.typing import NDArray
from op_cases import UNEXECUTABLE, OpCase, op_cases, values_for
from scalify_graphs import every_node_an_output, graphs, random_inputs

from scalify.ir.build import GraphBuilder
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import Attr, Graph, Node, NodeId, TensorType
from scalify.ir.mesh import Mesh, RankInt
from scalify.ir.ops import OPS, Call
from scalify.ir.ops.meaning.storage import stored
from scalify.normalize.lower import as_leaves, lower
from scalify.normalize.lowering import canonical
from scalify.normalize.meaning import Values
from scalify.normalize.terms import Terms

Array = NDArray[Any]


class NodeBlocks:
    """Operations on blocks mean what their nodes mean."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._types = {node.id: node.type for node in graph.nodes}

    def __call__(self, name: str, blocks: Sequence[Array]) -> Array:
        node = next(node for node in self._graph.nodes if name in _names(node))
        spec = OPS[node.op]
        rank = 0
        if spec.across is not None or any(map(_differs, node.attrs.values())):
            *blocks, own = blocks
            rank = int(own)
        types = [self._types[operand] for operand in node.operands]
        if spec.across is not None:
            held = [stored(own, types[0].dtype) for own in blocks[0]]
            return stored(spec.across(self._call(node, types, node.attrs), held)[rank], node.type.dtype)
        held = [stored(block, given.dtype) for block, given in zip(blocks, types, strict=True)]
        attrs = node.attrs
        if name != f"{node.op}({canonical(attrs)})":
            attrs = {**attrs, "axis": 0}
            attrs |= {"keepdims": False} if "keepdims" in attrs else {}
        assert spec.meaning is not None
        result = spec.meaning(replace(self._call(node, types, attrs), rank=rank), held)
        return stored(np.asarray(result), node.type.dtype)

    def _call(self, node: Node, types: Sequence[TensorType], attrs: Mapping[str, Attr]) -> Call:
        return Call(op=node.op, operands=tuple(types), attrs=attrs, mesh=self._graph.mesh, declared=node.type)


def _names(node: Node) -> tuple[str, str]:
    """What a node's operation is called, of whole operands and of lines along an axis."""
    settings = {name: value for name, value in node.attrs.items() if name not in ("axis", "keepdims")}
    return f"{node.op}({canonical(node.attrs)})", f"{node.op}({canonical(settings)})"


def _differs(value: Attr) -> bool:
    return isinstance(value, RankInt) or (isinstance(value, tuple) and any(map(_differs, value)))


class Leaves(dict[str, Array]):
    """Inputs by name; the content of a constant is that of the graph's only constant."""

    def __init__(self, graph: Graph, inputs: Mapping[str, Sequence[Array]]) -> None:
        super().__init__({name: np.stack(arrays) for name, arrays in inputs.items()})
        self._graph = graph

    def __missing__(self, name: str) -> Array:
        assert name.startswith("content:")
        constants = [node for node in self._graph.nodes if node.op == "constant"]
        assert len(constants) == 1
        call = Call(op="constant", attrs=constants[0].attrs, declared=constants[0].type)
        meaning = OPS["constant"].meaning
        assert meaning is not None
        return np.asarray(meaning(call, ()))[None]


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
