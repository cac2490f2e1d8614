"""The graphs of a production compiler: loaded whole, typed, and equal in value across ranks."""

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest
from hlo_edits import (
    edited,
    names,
    neuron_graph,
    other_constant,
    other_groups,
    other_reduction,
    parsed,
    shifted_slice,
    without_all_reduce,
)
from numpy.typing import NDArray

from scalify.errors import InvalidGraph
from scalify.ir.check import check
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import Graph, Node, NodeId, Output
from scalify.ir.mesh import SINGLE
from scalify.load.hlo import read_protobuf

FUSED_QKV = 9


def graph(name: str) -> Graph:
    return read_protobuf(neuron_graph(name).read_bytes())


@pytest.mark.parametrize("layers", [1, 8])
@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_every_graph_is_well_formed_and_of_its_ranks(ranks: int, layers: int):
    loaded = graph(f"tp{ranks}_layer{layers}")
    check(loaded)
    assert loaded.mesh.size == ranks
    assert (loaded.mesh == SINGLE) == (ranks == 1)
    assert not [node for node in loaded.nodes if node.op == "opaque"]
    assert [node.attrs["position"] for node in loaded.inputs()] == list(range(len(loaded.inputs())))


def test_identities_are_gone_and_known_calls_have_a_meaning():
    loaded = graph("tp1_layer1")
    (first, *_), by_id = [node for node in loaded.nodes if node.op == "rms_norm"], loaded.by_id()
    assert first.id == "custom-call.50"
    assert first.attrs["axes"] == (0,)
    assert first.attrs["eps"] == pytest.approx(1e-5)
    # The weight comes through AwsNeuronTransferWithStaticRing.
    assert by_id[first.operands[1]].op == "input"


def test_reductions_are_known_by_their_computation():
    kinds = [node.attrs["kind"] for node in graph("tp2_layer1").nodes if node.op == "reduce"]
    assert kinds == ["max", "sum"]
    collectives = [node for node in graph("tp2_layer1").nodes if node.op == "all_reduce"]
    assert [node.attrs["groups"] for node in collectives] == [((0, 1),), ((0, 1),)]


def test_a_gather_of_rows_is_a_take():
    (take,) = (node for node in graph("tp1_layer1").nodes if node.op == "take")
    assert (take.id, take.attrs["axis"], take.type.shape) == ("gather.142", 0, (1, 2048, 4))


def test_caches_are_taken_over_by_outputs():
    loaded = graph("tp2_layer1")
    aliases = {output.name: output.alias for output in loaded.outputs}
    assert aliases == {"output.0": None, "output.1": "p6.7", "output.2": "p7.8"}


def test_the_line_is_the_model_s_and_the_chain_is_kept():
    node = graph("tp2_layer1").by_id()[NodeId("all-reduce.127")]
    assert node.site is not None
    assert node.site.file.endswith("layers/attention.py")
    assert "site-packages" not in node.site.file
    assert node.stack[0].file.endswith("test.py")
    assert node.site in node.stack


def test_ranks_together_compute_what_one_device_computes():
    whole, parts = until_head(graph("tp1_layer1")), until_head(graph("tp2_layer1"))
    inputs = _inputs(whole)
    expected = evaluate(whole, inputs)
    found = evaluate(parts, {name: _shards(name, parts, whole, inputs) for name in _names(parts)})
    np.testing.assert_allclose(found["hidden"][1], expected["hidden"][0], atol=1e-9)
    for output in ("output.1", "output.2"):
        np.testing.assert_allclose(np.concatenate(found[output], 2), expected[output][0], atol=1e-9)

    forgotten, *_ = names(parsed(neuron_graph("tp2_layer1")), "all-reduce")
    wrong = until_head(read_protobuf(edited(neuron_graph("tp2_layer1"), without_all_reduce(forgotten))))
    found = evaluate(wrong, {name: _shards(name, wrong, whole, inputs) for name in _names(wrong)})
    assert np.abs(found["hidden"][1] - expected["hidden"][0]).max() > 1e-3


def until_head(graph: Graph) -> Graph:
    """The graph without its output projection, whose weight alone would take 2 GB."""
    (head,) = (node for node in graph.nodes if node.op == "einsum" and node.type.shape[-1] == 4)
    before = graph.nodes[: graph.nodes.index(head)]
    kept = tuple(node for node in before if node.id != head.operands[0])
    outputs = (Output(name="hidden", value=head.operands[1]), *graph.outputs[1:])
    return replace(graph, nodes=kept, outputs=outputs)


def test_edits_change_one_node_and_still_type_check():
    path = neuron_graph("tp2_layer1")
    loaded = read_protobuf(path.read_bytes())
    for edit, name in (
        (shifted_slice("slice.54", dim=1, by=64), "slice.54"),
        (other_reduction("all-reduce.127", "maximum"), "all-reduce.127"),
        (other_groups("all-reduce.127", ((1, 0),)), "all-reduce.127"),
        (other_constant("constant.85", np.float16(4).tobytes()), "constant.85"),
    ):
        wrong = read_protobuf(edited(path, edit))
        check(wrong)
        assert _without(loaded, name) == _without(wrong, name)
        assert _meaning(loaded, name) != _meaning(wrong, name)


def test_a_start_that_is_not_neutral_takes_part_in_a_maximum():
    path = neuron_graph("tp1_layer1")
    loaded = read_protobuf(edited(path, other_constant("constant.97", np.float16(-4.0).tobytes())))
    check(loaded)
    node = loaded.by_id()[NodeId("reduce.98")]
    assert node.op == "max"
    constant = loaded.by_id()[node.operands[1]]
    assert constant.attrs["data"] == (-4.0,)
    assert constant.attrs["data"] != (-inf,)


def test_a_sum_from_anything_but_zero_has_no_meaning():
    path = neuron_graph("tp1_layer1")
    loaded = read_protobuf(edited(path, other_constant("constant.108", np.float16(2.0).tobytes())))
    (node,) = (node for node in loaded.nodes if node.op == "opaque")
    assert (node.id, node.attrs["target"]) == ("reduce.109", "hlo.reduce")


def test_a_cycle_is_one_line():
    path = neuron_graph("tp1_layer1")

    def edit(module: Any) -> None:
        (entry,) = (computation for computation in module.computations if computation.id == module.entry)
        entry.instructions[30].operands[0] = entry.instructions[31].id

    with pytest.raises(InvalidGraph, match="does not come before it"):
        read_protobuf(edited(path, edit))


def _names(graph: Graph) -> list[str]:
    return [str(node.attrs["name"]) for node in graph.inputs()]


def _inputs(graph: Graph) -> dict[str, NDArray[Any]]:
    generator = np.random.default_rng(0)
    values: dict[str, NDArray[Any]] = {}
    for node in graph.inputs():
        size = 0.02 if len(node.type.shape) == 2 else 1.0
        values[str(node.attrs["name"])] = generator.standard_normal(node.type.shape) * size
    values |= {name: np.zeros(1, np.int64) for name in ("p4.5", "p5.6")}
    values |= {"p1.2": np.arange(64), "p2.3": np.zeros(4, np.int64), "p3.4": np.array([63])}
    return values


def _shards(
    name: str, parts: Graph, whole: Graph, inputs: dict[str, NDArray[Any]]
) -> NDArray[Any] | list[NDArray[Any]]:
    """Each rank's piece: along the one dimension that differs, each part of the fused weight by itself."""
    node, full = _input(parts, name), inputs[name]
    dims = [
        dim
        for dim, (part, all_of) in enumerate(zip(node.type.shape, full.shape, strict=True))
        if part != all_of
    ]
    if not dims:
        return full
    (dim,), ranks = dims, parts.mesh.size
    if node.attrs["position"] != FUSED_QKV:
        return np.split(full, ranks, axis=dim)
    query, key, value = (np.split(part, ranks, axis=1) for part in np.split(full, [2048, 2560], axis=1))
    return [np.concatenate(pieces, axis=1) for pieces in zip(query, key, value, strict=True)]


def _input(graph: Graph, name: str) -> Node:
    (node,) = (node for node in graph.inputs() if node.attrs["name"] == name)
    return node


def _without(graph: Graph, name: str) -> list[tuple[object, ...]]:
    return [_shown(node) for node in graph.nodes if node.id != name]


def _meaning(graph: Graph, name: str) -> list[tuple[object, ...]]:
    return [_shown(node) for node in graph.nodes if node.id == name]


def _shown(node: Node) -> tuple[object, ...]:
    return node.id, node.op, node.operands, dict(node.attrs), node.type
