"""StableHLO as text and as bytecode: what the graph computes is what JAX computes."""

# pyright: reportUnknownLambdaType=false
# What JAX is given are lambdas; JAX itself says nothing of their types.

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax", reason="JAX is not installed")

import jax
import jax.numpy as jnp
from jax import export, lax
from jax_programs import CASES, SHARDED, A, X, agree, on_ranks, values_of

from scalify.errors import InvalidGraph, ScalifyError, UnsupportedFormat
from scalify.ir.mesh import Mesh
from scalify.load import load
from scalify.load.sniff import Kind, kind_of
from scalify.load.stablehlo import read

NAMES = tuple(CASES)
# Reading starts a process: many functions share one module.
SHARES = tuple(NAMES[first::6] for first in range(6))


def lowered(function: Any, *args: Any, debug_info: bool = True) -> bytes:
    # An argument that nothing reads is kept, so that inputs are the arguments.
    return jax.jit(function, keep_unused=True).lower(*args).as_text(debug_info=debug_info).encode()


def together(names: Sequence[str]) -> tuple[Any, tuple[Any, ...]]:
    def function(*args: Any) -> list[Any]:
        left = list(args)
        return [CASES[name][0](*(left.pop(0) for _ in CASES[name][1])) for name in names]

    return function, tuple(arg for name in names for arg in CASES[name][1])


@pytest.mark.parametrize("names", SHARES, ids=lambda names: names[0])
def test_text_computes_what_jax_computes(names: Sequence[str]) -> None:
    function, args = together(names)
    graph = read(lowered(function, *args))

    assert not [node.attrs["target"] for node in graph.nodes if node.op == "opaque"]
    agree(values_of(graph, args), jax.jit(function)(*args))


def sharded_together() -> tuple[Any, tuple[Any, ...]]:
    parts = [on_ranks(function, *specs) for function, _, *specs in SHARDED.values()]

    def function(a: Any, b: Any) -> list[Any]:
        return [
            part(a, b) if name == "own_rows" else part(a) for name, part in zip(SHARDED, parts, strict=True)
        ]

    return function, SHARDED["own_rows"][1]


@pytest.mark.parametrize("form", ["text", "bare text", "bytecode"])
def test_sharded_modules_compute_on_every_rank_what_they_do_on_devices(form: str) -> None:
    function, args = sharded_together()
    if form == "bytecode":
        data = export.export(jax.jit(function))(*args).mlir_module_serialized
    else:
        data = lowered(function, *args, debug_info=form == "text")
    graph = read(data)

    assert graph.mesh == Mesh(axes=(("dp", 2), ("tp", 2)))
    agree(values_of(graph, args), jax.jit(function)(*args))


def test_bytecode_computes_what_jax_computes() -> None:
    function, args = together(NAMES)
    data = export.export(jax.jit(function, keep_unused=True))(*args).mlir_module_serialized

    agree(values_of(read(data), args), jax.jit(function)(*args))


def test_names_lines_and_scopes_are_those_of_the_program() -> None:
    def function(params: Any, x: Any) -> Any:
        with jax.named_scope("block"):
            return {"y": jnp.sin(x @ params["w"])}

    graph = read(lowered(function, {"w": A.T[:6]}, X))

    assert [node.attrs["name"] for node in graph.inputs()] == ["params.w", "x"]
    assert [output.name for output in graph.outputs] == ["output.y"]
    (sine,) = (node for node in graph.nodes if node.op == "sin")
    assert sine.site is not None
    assert (sine.site.file, sine.site.line) == (__file__, function.__code__.co_firstlineno + 2)
    assert "block" in sine.scope


def test_a_module_that_tells_no_lines_is_placed_at_its_own(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_bytes(lowered(jnp.sin, X, debug_info=False))
    (sine,) = (node for node in load(path).nodes if node.op == "sin")

    assert sine.site is not None
    assert sine.site.file == str(path)
    assert "stablehlo.sine" in path.read_text().splitlines()[sine.site.line - 1]


def test_files_are_known_by_their_content(tmp_path: Path) -> None:
    text, bare, code, other = (tmp_path / name for name in "abcd")
    text.write_bytes(lowered(jnp.sin, X))
    bare.write_bytes(b"// a comment\n" + lowered(jnp.sin, X, debug_info=False))
    code.write_bytes(export.export(jax.jit(jnp.sin))(X).mlir_module_serialized)
    other.write_text("# a program\nimport module\n")

    assert [kind_of(path) for path in (text, bare, code)] == [Kind.STABLEHLO] * 3
    with pytest.raises(UnsupportedFormat):
        kind_of(other)


def test_a_buffer_that_is_taken_over_is_an_alias() -> None:
    text = jax.jit(lambda cache, x: (cache + x, x * 2), donate_argnums=0).lower(X, X).as_text(debug_info=True)

    assert [output.alias for output in read(text.encode()).outputs] == ["cache", None]


TEXT = """
module @m attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    BODY
    return %0 : tensor<4xf32>
  }
}
"""


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (
            "%0 = stablehlo.custom_call @SPMDFullToShardShape(%arg0) : (tensor<4xf32>) -> tensor<4xf32>",
            "Shardy",
        ),
        (
            "%0 = stablehlo.custom_call @effects(%arg0) {has_side_effect = true} : "
            "(tensor<4xf32>) -> tensor<4xf32>",
            "effects beyond its result",
        ),
        ("%0 = call @main(%arg0) : (tensor<4xf32>) -> tensor<4xf32>", "nested 100 deep"),
        (
            "%c = stablehlo.constant dense<(1.0,2.0)> : tensor<complex<f32>>\n"
            "    %0 = stablehlo.abs %arg0 : tensor<4xf32>",
            "not read",
        ),
        (
            '%0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({\n'
            "    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
            "      %s = stablehlo.add %a, %b : tensor<f32>\n"
            "      stablehlo.return %s : tensor<f32>\n"
            "    }) : (tensor<4xf32>) -> tensor<4xf32>",
            "among replicas",
        ),
    ],
)
def test_what_is_not_read_is_refused_with_why(body: str, what: str) -> None:
    with pytest.raises(ScalifyError, match=what):
        read(TEXT.replace("BODY", body).encode())


def test_what_has_no_meaning_is_opaque_and_told_by_its_attributes() -> None:
    line = (
        '%0 = stablehlo.custom_call @mine(%arg0) {{backend_config = "{}"}} : (tensor<4xf32>) -> tensor<4xf32>'
    )
    configs = [
        node.attrs["config"]
        for setting in "ab"
        for node in read(TEXT.replace("BODY", line.format(setting)).encode()).nodes
        if node.op == "opaque"
    ]

    assert len(set(configs)) == 2


def test_a_condition_that_may_be_out_of_range_is_not_guessed() -> None:
    body = """%c = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xi32>
    %s = stablehlo.slice %c [0:1] : (tensor<4xi32>) -> tensor<1xi32>
    %i = stablehlo.reshape %s : (tensor<1xi32>) -> tensor<i32>
    %0 = "stablehlo.case"(%i) ({
      stablehlo.return %arg0 : tensor<4xf32>
    }, {
      %n = stablehlo.negate %arg0 : tensor<4xf32>
      stablehlo.return %n : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>"""
    with pytest.raises(UnsupportedFormat, match="not known to be in range"):
        read(TEXT.replace("BODY", body).encode())


GOOD = lowered(lambda x: lax.fori_loop(0, 2, lambda _, v: jnp.sort(v @ v.T)[:, :6], x @ x.T[:, :4]), X[:, :4])


@pytest.mark.parametrize("share", [0.02, 0.2, 0.4, 0.6, 0.8, 0.97])
def test_a_text_that_is_cut_off_is_one_refusal(share: float) -> None:
    with pytest.raises(InvalidGraph):
        read(GOOD[: int(len(GOOD) * share)])


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_bytecode_that_is_cut_off_is_one_refusal(share: float) -> None:
    data = export.export(jax.jit(jnp.sin))(X).mlir_module_serialized
    with pytest.raises(InvalidGraph):
        read(data[: int(len(data) * share)])


def _doubling(depth: int) -> bytes:
    names = "".join(f"#l{n} = loc(callsite(#l{n + 1} at #l{n + 1}))\n" for n in reversed(range(depth)))
    body = "%0 = stablehlo.abs %arg0 : tensor<4xf32> loc(#l0)"
    return (f'#l{depth} = loc("x")\n' + names + TEXT.replace("BODY", body)).encode()


def _calls(depth: int) -> bytes:
    """Two calls of the next a function: nothing is listed until the last."""
    functions = "".join(
        f"  func.func private @f{n}(%a: tensor<4xf32>) -> tensor<4xf32> {{\n"
        f"    %x = call @f{n + 1}(%a) : (tensor<4xf32>) -> tensor<4xf32>\n"
        f"    %y = call @f{n + 1}(%a) : (tensor<4xf32>) -> tensor<4xf32>\n"
        "    return %a : tensor<4xf32>\n  }\n"
        for n in range(depth)
    )
    last = (
        f"  func.func private @f{depth}(%a: tensor<4xf32>) -> tensor<4xf32> {{ return %a : tensor<4xf32> }}\n"
    )
    start = TEXT.replace("BODY", "%0 = call @f0(%arg0) : (tensor<4xf32>) -> tensor<4xf32>").rstrip()
    return (start.removesuffix("}") + functions + last + "}\n").encode()


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"module attributes {a = " + b"[" * 100_000, "nested"),
        (b"module {\xff}", "UTF-8"),
        (b"ML\xefR" + b"\x00\xff" * 500, "no StableHLO"),
        (b"module {}", "no function main"),
        (_doubling(60), "endless"),
        (_calls(40), "once its calls are inlined"),
    ],
    ids=["deep", "no text", "no code", "empty", "doubling names", "doubling calls"],
)
def test_hostile_files_are_one_refusal(data: bytes, what: str) -> None:
    with pytest.raises(InvalidGraph, match=what):
        read(data)
