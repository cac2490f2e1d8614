"""Functions of JAX captured from their jaxprs: what the graph computes is what JAX computes."""

# pyright: reportUnknownLambdaType=false
# What JAX is given are lambdas; JAX itself says nothing of their types.

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed")

import jax
import jax.numpy as jnp
from jax import lax, shard_map
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P
from jax_programs import CASES, SHARDED, A, X, agree, on_ranks, values_of

from scalify.capture import capture
from scalify.capture.jax import jax_graph
from scalify.capture.jax_functions import is_jax
from scalify.errors import CaptureFailed
from scalify.ir.graph import Graph
from scalify.ir.mesh import Mesh
from scalify.load import load


def graph_of(function: Any, *args: Any) -> Graph:
    return jax_graph(function, args, {}, name="function")


@pytest.mark.parametrize("name", CASES)
def test_a_primitive_computes_what_jax_computes(name: str) -> None:
    function, args = CASES[name]
    graph = graph_of(function, *args)

    assert not [node for node in graph.nodes if node.op == "opaque"]
    agree(values_of(graph, args), jax.jit(function)(*args))


@pytest.mark.parametrize("name", SHARDED)
def test_a_sharded_function_computes_on_every_rank_what_it_does_on_devices(name: str) -> None:
    function, args, in_specs, out_specs = SHARDED[name]
    sharded = on_ranks(function, in_specs, out_specs)
    graph = graph_of(sharded, *args)

    assert graph.mesh == Mesh(axes=(("dp", 2), ("tp", 2)))
    agree(values_of(graph, args), jax.jit(sharded)(*args))


def test_a_broadcast_gives_everybody_the_value_of_its_source() -> None:
    """JAX has no translation of it for CPUs."""
    function = on_ranks(lambda x: lax.pbroadcast(x, ("tp",), 1), P(("dp", "tp")), P(("dp", "tp")))
    (found,) = values_of(graph_of(function, A), (A,))

    np.testing.assert_array_equal(found[0], np.concatenate([A[2:4], A[2:4], A[6:], A[6:]]))


def test_no_device_is_needed_and_the_border_is_in_the_program() -> None:
    """Inputs are whole; each rank cuts out its block, as in_specs say."""
    mesh = AbstractMesh((2, 3), ("dp", "tp"))
    function = shard_map(
        lambda x: x * 2.0, mesh=mesh, in_specs=P(None, ("tp", "dp")), out_specs=P("tp"), check_vma=False
    )
    graph = graph_of(function, jax.ShapeDtypeStruct((4, 12), jnp.float32))

    (x,) = graph.inputs()
    (cut,) = (node for node in graph.nodes if node.op == "slice")
    assert x.type.shape == (4, 12)
    assert cut.type.shape == (4, 2)
    starts = cut.attrs["starts"]
    assert isinstance(starts, tuple)
    assert [start.at(rank) for start in starts[1:] for rank in range(6)] == [0, 4, 8, 2, 6, 10]  # pyright: ignore
    assert [node.attrs["dim"] for node in graph.nodes if node.op == "all_gather"] == [0]


def test_names_are_those_of_the_function_and_its_trees() -> None:
    def function(params: Any, x: Any) -> Any:
        return {"hidden": x @ params["layers"][1]["up"], "sum": x.sum()}

    layers = [{"up": np.ones((6, 2))}, {"up": np.ones((6, 3))}]
    graph = graph_of(function, {"layers": layers}, X)

    assert [node.attrs["name"] for node in graph.inputs()] == [
        "params.layers.0.up",
        "params.layers.1.up",
        "x",
    ]
    assert [output.name for output in graph.outputs] == ["output.hidden", "output.sum"]


def test_a_node_says_its_line_its_callers_and_its_scope() -> None:
    def inner(x: Any) -> Any:
        return jnp.sin(x)

    def outer(x: Any) -> Any:
        with jax.named_scope("block"):
            return inner(x)

    (sine,) = (node for node in graph_of(outer, X).nodes if node.op == "sin")

    assert sine.site is not None
    assert sine.site.file == __file__
    assert sine.site.line == inner.__code__.co_firstlineno + 1
    assert [site.line for site in sine.stack][-2:] == [outer.__code__.co_firstlineno + 2, sine.site.line]
    assert sine.scope == "block"


def test_what_has_no_meaning_is_a_pure_operation_told_by_its_parameters() -> None:
    one, other, again = (
        graph_of(lambda x, power=power: lax.approx_max_k(x, power), X) for power in (2, 3, 2)
    )
    configs = [
        [node.attrs["config"] for node in graph.nodes if node.op == "opaque"] for graph in (one, other, again)
    ]

    assert all(configs)
    assert configs[0] == configs[2] != configs[1]


def _until_small(x: Any) -> Any:
    return lax.while_loop(lambda v: v.sum() > 1, lambda v: v / 2, x)


def _called_back(x: Any) -> Any:
    return jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct(X.shape, X.dtype), x)


def _exchanging_branch(x: Any) -> Any:
    def local(x: Any) -> Any:
        return lax.cond(x[0, 0] > 0, lambda v: lax.psum(v, "tp"), lambda v: v, x)

    return on_ranks(local, P(), P())(x)


def _several_meshes(x: Any) -> Any:
    for axis in ("a", "b"):
        mesh = AbstractMesh((2,), (axis,))
        x = shard_map(lambda v: v, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)(x)
    return x


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (_until_small, "how often it runs depends on values"),
        (_called_back, "calls Python"),
        (_exchanging_branch, "ranks exchange values in a branch"),
        (_several_meshes, "several meshes"),
        (lambda x: lax.fori_loop(0, 100_000, lambda _, v: v + 1, x), "runs 100000 times"),
        (lambda x: x if x.sum() > 0 else -x, "JAX cannot trace"),
        (lambda x: None, "returns no array"),
    ],
)
def test_what_cannot_be_captured_says_why(function: Any, what: str) -> None:
    with pytest.raises(CaptureFailed, match=what):
        graph_of(function, X)


def test_a_refusal_names_the_users_line() -> None:
    line = _until_small.__code__.co_firstlineno + 1
    with pytest.raises(CaptureFailed, match=f"test_jax.py:{line}"):
        graph_of(_until_small, X)


def test_functions_of_jax_are_told_from_those_of_pytorch() -> None:
    import torch

    described = jax.ShapeDtypeStruct((2,), jnp.float32)
    assert is_jax((jnp.sin, (X,)))
    assert is_jax((lambda tree: tree, ({"x": [described]},)))
    assert not is_jax((torch.sin, (torch.zeros(2),)))
    assert not is_jax((torch.nn.Linear(2, 2), (X,)))
    assert not is_jax(None)
    assert not is_jax((lambda n: n, (3,)))


def test_the_command_writes_a_graph_that_is_read_again(tmp_path: Path) -> None:
    module = tmp_path / "jax_under_capture.py"
    module.write_text(
        "import jax\nimport jax.numpy as jnp\n\n"
        "def build():\n    return jnp.tanh, (jax.ShapeDtypeStruct((4,), jnp.float32),)\n"
    )
    (path,) = capture(f"{module}:build", tmp_path / "graph.scg")

    assert [node.op for node in load(path).nodes] == ["input", "tanh"]
    with pytest.raises(CaptureFailed, match="gradients of a function of JAX"):
        capture(f"{module}:build", tmp_path / "graph.scg", backward=True)


def test_constants_of_all_sizes_are_held() -> None:
    large = np.arange(70_000.0)
    graph = graph_of(lambda v: (v + jnp.asarray(large), v + jnp.full(70_000, 2.5)), large)

    constants = [node.attrs for node in graph.nodes if node.op == "constant"]
    assert sorted(len(attrs.get("data", ())) for attrs in constants) == [0, 1]  # pyright: ignore
    assert A.dtype == np.float64
