"""Programs with shorter dimensions: of the same operations, and different where the given ones are."""

import pytest
from scalify_cases import Program

from scalify.ir.check import check
from scalify.ir.graph import Graph
from scalify.refute.budget import Search
from scalify.refute.lead import affordable, lead
from scalify.refute.pair import pair_of
from scalify.refute.shrink import shrink
from scalify.relate.relate import relate

WIDE, HEADS, ROWS, VOCABULARY = 1 << 15, 64, 512, 1 << 16


def decoder(ranks: int, *, reduced: bool = True) -> Graph:
    """An embedding cut over the vocabulary, attention by heads, too large to be run in a test."""
    p = Program(tp=ranks) if ranks > 1 else Program()
    heads, rows = HEADS // ranks, VOCABULARY // ranks
    table = p.input("embed", "f32", (rows, WIDE), role="parameter")
    ids = p.input("ids", "i64", (ROWS,))
    if ranks > 1:
        local = p.add("sub", ids, p.add("mul", p.place_on("tp"), rows))
        mine = p.add("and", p.add("ge", local, 0), p.add("le", local, rows - 1))
        found = p.add("take", table, p.add("where", mine, local, 0), axis=0)
        held = p.add("where", p.add("broadcast", mine, shape=(ROWS, WIDE), dims=(0,)), found, 0.0)
        x = p.over_ranks(held)
    else:
        x = p.add("take", table, ids, axis=0)
    q = p.product("ti,io->to", x, p.input("q", "f32", (WIDE, WIDE // ranks), role="parameter"))
    q = p.turned(p.shaped(q, ROWS, heads, WIDE // HEADS), 1, 0, 2)
    mixed = p.add("attention", q, q, q, scale=0.125, causal=True)
    flat = p.shaped(p.turned(mixed, 1, 0, 2), ROWS, WIDE // ranks)
    out = p.product("ti,io->to", flat, p.input("o", "f32", (WIDE // ranks, WIDE), role="parameter"))
    p.output("y", p.over_ranks(out) if ranks > 1 and reduced else out)
    return p.graph()


@pytest.mark.parametrize("ranks", [2, 8])
def test_all_dimensions_shrink_together(ranks: int):
    baseline, candidate = decoder(1), decoder(ranks)
    smaller = shrink(baseline, candidate, relate(baseline, candidate))
    assert smaller is not None
    for before, after in zip((baseline, candidate), smaller, strict=True):
        check(after)
        assert [node.op for node in after.nodes] == [node.op for node in before.nodes]
    related = relate(*smaller)
    assert not related.undecided
    assert affordable(pair_of(*smaller, related), Search())


def test_what_differs_when_shrunk_is_a_lead_and_what_does_not_is_none():
    baseline, budget = decoder(1), Search(draws=2)
    for candidate, said in ((decoder(2), "no values were found"), (decoder(2, reduced=False), "they differ")):
        pair = pair_of(baseline, candidate, relate(baseline, candidate))
        assert not affordable(pair, budget)
        assert said in lead(pair, budget)


def test_what_cannot_shrink_is_said_to():
    def odd() -> Graph:
        p = Program()
        p.output("y", p.add("exp", p.input("x", "f32", (7, 9))))
        return p.graph()

    assert shrink(odd(), odd(), relate(odd(), odd())) is None
