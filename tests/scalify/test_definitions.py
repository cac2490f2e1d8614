"""Unknown operations are written out by the user's graphs, and only where these fit."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from scalify import verify
from scalify.definitions import define
from scalify.errors import InvalidGraph
from scalify.ir.build import GraphBuilder
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import DType, Graph
from scalify.ir.text import save
from scalify.precision.finding import Kind
from scalify.verdict import Proved, Reason, Unknown
from scalify.verification import verification


def fused(target: str = "lab.scaled_silu") -> Graph:
    build = GraphBuilder("fused")
    x, w = build.input("x", "f32", (2, 3)), build.input("w", "f32", (3,))
    y = build.add("opaque", x, w, dtype="f32", shape=(2, 3), target=target, config="")
    build.output("y", build.add("neg", y))
    return build.graph()


def plain() -> Graph:
    build = GraphBuilder("plain")
    x, w = build.input("x", "f32", (2, 3)), build.input("w", "f32", (3,))
    build.output("y", build.add("neg", build.add("mul", build.add("silu", x), w)))
    return build.graph()


def definition(rows: int = 2, *, squared: bool = False) -> Graph:
    build = GraphBuilder("definition")
    x, w = build.input("p", "f32", (rows, 3)), build.input("q", "f32", (3,))
    y = build.add("mul", build.add("silu", x), w)
    build.output("out", build.add("square", y) if squared else y)
    return build.graph()


def test_a_defined_operation_is_proved_against_its_parts(tmp_path: Path) -> None:
    place = tmp_path / "definition.scg"
    save(definition(), place)
    verdict = verify(plain(), fused(), definitions={"lab.scaled_silu": [place]})
    assert isinstance(verdict, Proved)
    assert "lab.scaled_silu is what its definition computes (1 times)" in verdict.assumptions


def test_without_a_definition_the_operation_is_named() -> None:
    verdict = verify(plain(), fused())
    assert isinstance(verdict, Unknown)
    assert verdict.reason is Reason.UNKNOWN_OPS
    assert "lab.scaled_silu" in verdict.missing


def test_a_wrong_definition_is_not_proved(tmp_path: Path) -> None:
    place = tmp_path / "definition.scg"
    save(definition(squared=True), place)
    assert isinstance(verify(plain(), fused(), definitions={"lab.scaled_silu": [place]}), Unknown)


def test_of_several_definitions_the_one_that_fits_is_taken() -> None:
    defined = define(fused(), {"lab.scaled_silu": [definition(5), definition(2)]})
    assert dict(defined.used) == {"lab.scaled_silu": 1}
    assert all(node.op != "opaque" for node in defined.graph.nodes)


def test_a_definition_of_other_shapes_or_another_operation_changes_nothing() -> None:
    graph = fused()
    assert define(graph, {"lab.scaled_silu": [definition(5)], "lab.other": [definition()]}).graph is graph


def test_what_is_written_out_computes_the_definition() -> None:
    x, w = [[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]], [2.0, 3.0, 4.0]
    inputs = {"x": _array(x), "w": _array(w)}
    written = define(fused(), {"lab.scaled_silu": [definition()]}).graph
    assert _array(evaluate(written, inputs)["y"][0]) == pytest.approx(evaluate(plain(), inputs)["y"][0])


def test_a_definition_has_one_result_on_one_rank() -> None:
    build = GraphBuilder("two")
    x = build.input("x", "f32", (2, 3))
    build.output("a", x)
    build.output("b", build.add("neg", x))
    with pytest.raises(InvalidGraph, match=r"lab\.scaled_silu has 2 results"):
        define(fused(), {"lab.scaled_silu": [build.graph()]})


def _array(values: object) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64)


def scaled(weight: DType, *, defined: bool) -> Graph:
    """``silu(x) * w`` in f32, or an operation of that name."""
    build = GraphBuilder("scaled")
    x, w = build.input("x", "bf16", (2, 3)), build.input("w", weight, (3,), role="parameter")
    if defined:
        y = build.add("opaque", x, w, dtype="bf16", shape=(2, 3), target="lab.scaled_silu", config="")
    else:
        y = build.add("cast", build.add("mul", build.add("silu", x), w, dtype="f32"), dtype="bf16")
    build.output("y", y)
    return build.graph()


def narrow_definition() -> Graph:
    build = GraphBuilder("definition")
    x, w = build.input("p", "bf16", (2, 3)), build.input("q", "bf16", (3,))
    build.output("out", build.add("mul", build.add("silu", x), w))
    return build.graph()


@pytest.mark.parametrize(("weight", "kinds"), [("bf16", []), ("f32", [Kind.ROUNDED])])
def test_an_operand_of_another_dtype_is_read_in_that_of_the_definition(
    tmp_path: Path, weight: DType, kinds: list[Kind]
) -> None:
    place = tmp_path / "definition.scg"
    save(narrow_definition(), place)
    done = verification(
        scaled(weight, defined=False),
        scaled(weight, defined=True),
        definitions={"lab.scaled_silu": [place]},
    )
    assert isinstance(done.verdict, Proved)
    assert [finding.kind for finding in done.precision] == kinds


def test_a_definition_over_whole_numbers_is_none_over_real_ones() -> None:
    build = GraphBuilder("definition")
    x, w = build.input("p", "f32", (2, 3)), build.input("q", "i64", (3,))
    build.output("out", build.add("mul", x, w))
    assert define(fused(), {"lab.scaled_silu": [build.graph()]}).used == {}
