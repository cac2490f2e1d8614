"""The gradient of an embedding whose rows lie on two ranks is, on each, that of its own rows."""

import pytest

import scalify
from scalify.ir.build import GraphBuilder
from scalify.ir.graph import Graph
from scalify.ir.mesh import Mesh
from scalify.verdict import Proved

TOKENS, ROWS, WIDTH = 5, 6, 2


def whole() -> Graph:
    build = GraphBuilder("whole")
    ids, grad = build.input("ids", "i64", (TOKENS,)), build.input("grad", "f32", (TOKENS, WIDTH))
    table = build.constant(0.0, "f32", (ROWS, WIDTH))
    build.output("grad.table", build.add("index_put", table, grad, ids, mode="add"))
    return build.graph()


def on_two_ranks(*, masks: bool = True, step: int = ROWS // 2) -> Graph:
    build = GraphBuilder("ranks", mesh=Mesh(axes=(("tp", 2),)))
    rows = ROWS // 2
    ids, grad = build.input("ids", "i64", (TOKENS,)), build.input("grad", "f32", (TOKENS, WIDTH))
    first = build.add("mul", build.add("rank", stride=1, size=2), build.constant(step, "i64"))
    place = build.add("sub", ids, first)
    before = build.add("lt", place, build.constant(0, "i64"))
    outside = build.add("or", before, build.add("ge", place, build.constant(rows, "i64")))
    place = build.add("where", outside, build.constant(0, "i64"), place)
    column = build.add("reshape", outside, shape=(TOKENS, 1))
    masked = build.add("where", column, build.constant(0.0, "f32"), grad) if masks else grad
    table = build.constant(0.0, "f32", (rows, WIDTH))
    build.output("grad.table", build.add("index_put", table, masked, place, mode="add"))
    return build.graph()


def test_each_rank_adds_to_its_own_rows() -> None:
    verdict = scalify.verify(whole(), on_two_ranks())
    assert isinstance(verdict, Proved)
    assert [output.layout for output in verdict.outputs] == ["dimension 0 sharded over tp"]


@pytest.mark.parametrize("candidate", [on_two_ranks(masks=False), on_two_ranks(step=0), on_two_ranks(step=2)])
def test_what_is_added_elsewhere_or_to_other_rows_is_not_proved(candidate: Graph) -> None:
    assert not isinstance(scalify.verify(whole(), candidate), Proved)
