"""Look-ups that a proof takes to be in range: tried, told, and refuted where they are not."""

from scalify_cases import Program

import scalify
from scalify.ir.graph import Graph
from scalify.refute.reach import cone, look_ups
from scalify.verdict import Proved, Refuted

ROWS, WIDE = 8, 4


def embedding(ranks: int = 1, *, masks: tuple[str, ...] = ("ge", "lt")) -> Graph:
    """A table cut by rows: foreign tokens are masked on either side, or on one."""
    p = Program(tp=ranks) if ranks > 1 else Program()
    rows = ROWS // ranks
    table = p.input("table", "f32", (rows, WIDE), role="parameter")
    ids = p.input("ids", "i64", (6,))
    if ranks == 1:
        p.output("y", p.add("take", table, ids, axis=0))
        return p.graph()
    local = p.add("sub", ids, p.add("mul", p.place_on("tp"), rows))
    bounds = {"ge": 0, "lt": rows}
    own = [p.add(op, local, bounds[op]) for op in masks]
    mine = p.add("and", *own) if len(own) == 2 else own[0]
    found = p.add("take", table, p.add("where", mine, local, 0), axis=0)
    held = p.add("where", p.add("broadcast", mine, shape=(6, WIDE), dims=(0,)), found, 0.0)
    p.output("y", p.over_ranks(held))
    return p.graph()


def test_what_is_in_range_is_proved_and_said_to_have_been_tried():
    verdict = scalify.verify(embedding(), embedding(2))
    assert isinstance(verdict, Proved)
    assert any("look-ups read rows that exist" in said and "tried on" in said for said in verdict.assumptions)


def test_a_mask_of_one_side_reads_beyond_the_table():
    for masks in (("ge",), ("lt",)):
        verdict = scalify.verify(embedding(), embedding(2, masks=masks))
        assert isinstance(verdict, Refuted)
        assert "among 4" in verdict.witness.beyond
        assert verdict.suspect is not None
        assert verdict.suspect.candidate.op == "take"


def test_only_what_indices_depend_on_is_run():
    graph = embedding(2)
    kept = {node.op for node in cone(graph, look_ups(graph)).nodes}
    assert "take" not in kept and "all_reduce" not in kept
    assert [each.size for each in look_ups(graph)] == [ROWS // 2]


def test_constant_indices_are_no_assumption():
    p = Program()
    p.output("y", p.add("take", p.input("x", "f32", (4, 2)), p.constant((1, 3), "i64", (2,)), axis=0))
    assert look_ups(p.graph()) == ()
