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
from scalify.ir.mesh import SINGLE, Mesh
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
    assert not isinstance(verify(plain(), fused(), definitions={"lab.scaled_silu": [place]}), Proved)


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


def test_a_definition_has_results_on_one_rank_and_draws_nothing() -> None:
    for ranks, op in ((2, "neg"), (1, "random")):
        build = GraphBuilder("wrong", mesh=Mesh(axes=(("tp", ranks),)) if ranks > 1 else SINGLE)
        x = build.input("x", "f32", (2, 3))
        made = (
            build.add("neg", x)
            if op == "neg"
            else build.add("random", dtype="f32", shape=(2, 3), key="k", kind="uniform")
        )
        build.output("b", made)
        with pytest.raises(InvalidGraph, match=r"lab\.scaled_silu (runs on 2 ranks|draws random numbers)"):
            define(fused(), {"lab.scaled_silu": [build.graph()]})


def with_eps(*values: float) -> Graph:
    build = GraphBuilder("several")
    x, w = build.input("x", "f32", (2, 3)), build.input("w", "f32", (3,))
    for number, eps in enumerate(values):
        config = f'{{"eps": {eps!r}, "x": {{"tensor": 0}}, "w": {{"tensor": 1}}}}'
        y = build.add("opaque", x, w, dtype="f32", shape=(2, 3), target="lab.norm", config=config)
        build.output(f"y{number}", y)
    return build.graph()


def test_a_definition_for_stated_attributes_is_taken_where_they_are_these() -> None:
    defined = define(with_eps(1e-5, 0.5), {"lab.norm[eps=1e-05]": [definition()]})
    assert [str(node.attrs["config"])[:11] for node in defined.graph.nodes if node.op == "opaque"] == [
        '{"eps": 0.5'
    ]


def test_attributes_that_cannot_be_read_are_the_users_to_put_right() -> None:
    with pytest.raises(InvalidGraph, match="names no attributes"):
        define(with_eps(1.0), {"lab.norm[eps]": [definition()]})


def test_a_result_of_several_has_its_own_output_of_the_definition() -> None:
    build = GraphBuilder("pair")
    x = build.input("x", "f32", (2, 3))
    one = build.add("opaque", x, dtype="f32", shape=(2, 3), target="lab.pair", config="")
    other = build.add("opaque", x, dtype="f32", shape=(2,), target="lab.pair#1", config="")
    build.output("one", one)
    build.output("other", other)
    meaning = GraphBuilder("meaning")
    p = meaning.input("p", "f32", (2, 3))
    meaning.output("first", meaning.add("neg", p))
    meaning.output("second", meaning.add("reduce", p, kind="sum", axes=(1,)))
    defined = define(build.graph(), {"lab.pair": [meaning.graph()]})
    values = np.arange(6.0).reshape(2, 3)
    got = evaluate(defined.graph, {"x": values})
    assert np.array_equal(got["one"][0], -values)
    assert np.array_equal(got["other"][0], values.sum(1))


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
