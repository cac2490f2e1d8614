"""Weights made piece by piece: the same numbers, with none of them held."""

import numpy as np
import pytest
from scalify_cases import Program as Plain

from scalify.errors import OutOfRange
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import Graph, NodeId
from scalify.refute.cost import cost
from scalify.refute.draw import FAMILIES
from scalify.refute.pair import pair_of
from scalify.refute.tiles import in_pieces
from scalify.relate.relate import relate
from scalify.verdict import Draw

ROWS, WIDE, INNER, VOCABULARY = 3, 8, 12, 10


class Program(Plain):
    """With its token ids."""

    def ids(self) -> NodeId:
        """An input of a few."""
        return self.input("ids", "i64", (ROWS,))


def model(ranks: int) -> Graph:
    """A table that is held whole, weights that are read as they are and transposed, and one that is added."""
    p = Program(tp=ranks) if ranks > 1 else Program()
    inner = INNER // ranks
    x = p.add("take", p.input("table", "f32", (VOCABULARY, WIDE), role="parameter"), p.ids(), axis=0)
    x = p.add("add", x, p.input("bias", "f32", (WIDE,), role="parameter"))
    up = p.turned(p.input("up", "f32", (inner, WIDE), role="parameter"), 1, 0)
    hidden = p.add("relu", p.product("ti,io->to", x, up))
    out = p.product("to,oi->ti", hidden, p.input("down", "f32", (inner, WIDE), role="parameter"))
    p.output("y", p.over_ranks(out) if ranks > 1 else out)
    return p.graph()


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_pieces_make_the_same_results(ranks: int, family: str):
    baseline, candidate = model(1), model(ranks)
    pair = pair_of(baseline, candidate, relate(baseline, candidate))
    for graph, given in zip((baseline, candidate), pair.given(Draw(family=family, seed=3)), strict=True):
        kept, instead = in_pieces(graph, given.piece, large=WIDE)
        assert {node.op for node in kept.nodes if node.id in instead} == {"einsum", "take"}
        assert {str(node.attrs["name"]) for node in kept.inputs()} == {"ids", "bias"}
        whole, pieces = evaluate(graph, given), evaluate(kept, given, instead=instead)
        for one, other in zip(whole["y"], pieces["y"], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_what_something_else_reads_is_held():
    p = Program()
    weight = p.input("w", "f32", (WIDE, WIDE), role="parameter")
    p.output("y", p.product("ij,jk->ik", p.add("exp", weight), p.turned(weight, 1, 0)))
    graph = p.graph()
    given, _ = pair_of(graph, graph, relate(graph, graph)).given(Draw(family="sparse", seed=0))
    kept, instead = in_pieces(graph, given.piece, large=WIDE)
    np.testing.assert_allclose(evaluate(graph, given)["y"], evaluate(kept, given, instead=instead)["y"])


def test_a_row_that_does_not_exist_is_told():
    p = Program()
    p.output("y", p.add("take", p.input("table", "f32", (4, 4), role="parameter"), p.ids(), axis=0))
    graph = p.graph()
    given, _ = pair_of(graph, graph, relate(graph, graph)).given(Draw(family="sparse", seed=0))
    kept, instead = in_pieces(graph, given.piece, large=1)
    with pytest.raises(OutOfRange):
        evaluate(kept, {"ids": np.array([0, 4, 1])}, instead=instead)


def test_memory_is_counted_without_large_weights():
    def wide(size: int) -> Graph:
        p = Program()
        x = p.input("x", "f32", (1, size))
        p.output("y", p.product("ti,io->to", x, p.input("w", "f32", (size, size), role="parameter")))
        return p.graph()

    assert cost(wide(1 << 12)).memory_bytes > 1 << 27
    assert cost(wide(1 << 16)).memory_bytes < 1 << 22
