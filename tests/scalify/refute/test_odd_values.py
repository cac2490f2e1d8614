"""Values that an op has no meaning for, and constants that are not there: nothing breaks or is claimed."""

import numpy as np
from scalify_cases import Pair as Case
from scalify_cases import Program, replicated, with_itself

from scalify.ir.graph import Graph, TensorType
from scalify.ir.ops.spec import Call
from scalify.refute.budget import Search
from scalify.refute.doubt.passing import passed
from scalify.refute.refute import refute
from scalify.verdict import Reason, Refuted, Unknown, Verdict


def searched(baseline: Graph, candidate: Graph) -> Verdict:
    names = [str(node.attrs["name"]) for node in candidate.inputs()]
    pair = Case(
        verdict="unknown",
        baseline=baseline,
        candidate=candidate,
        inputs=dict.fromkeys(names, replicated),
        outputs=dict.fromkeys([output.name for output in candidate.outputs], replicated),
    )
    unproved = Unknown(reason=Reason.UNPROVED, outputs=(), assumptions=())
    return refute(baseline, candidate, pair.relations(), unproved, Search(draws=14))


def scaled(factor: float) -> Graph:
    """One output depends on a constant of which only a digest is known, the other does not."""
    p = Program()
    x = p.input("x", "f32", (4,))
    table = p.add("constant", dtype="f32", shape=(4,), digest="0" * 64)
    p.output("y", p.add("mul", p.add("mul", x, table), factor))
    p.output("z", p.add("mul", x, factor))
    return p.graph()


def test_constants_that_are_not_in_the_graph_hide_only_what_depends_on_them():
    verdict = searched(scaled(1.0), scaled(2.0))
    assert isinstance(verdict, Refuted)
    assert [output.candidate for output in verdict.witness.outputs] == ["z"]


def loss(shift: int) -> Graph:
    p = Program()
    logits, target = p.input("logits", "f32", (4, 5)), p.input("target", "i64", (4,))
    moved = p.add("add", target, shift)
    p.output("y", p.add("cross_entropy", logits, moved, ignore_index=-100, reduction="none"))
    return p.graph()


def test_targets_beyond_the_classes_are_look_ups_out_of_range():
    assert isinstance(searched(loss(0), loss(40)), Refuted)
    assert isinstance(searched(loss(40), loss(0)), Unknown)


def whole(op: str, number: int) -> Graph:
    p = Program()
    x = p.input("x", "i64", (4, 6))
    p.output("y", p.add(op, x, p.add("sub", x, number)))
    return p.graph()


def test_whole_numbers_divided_by_zero_or_shifted_too_far_say_nothing():
    for op in ("floordiv", "mod", "rem", "shift_left", "shift_right", "pow"):
        assert isinstance(searched(whole(op, 3), whole(op, 3)), Unknown)


def test_places_out_of_range_are_moved_inwards_on_both_sides():
    def cut(first: int) -> Graph:
        p = Program()
        x, start = p.input("x", "f32", (6,)), p.input("start", "i64", ())
        p.output("y", p.add("dynamic_slice", x, p.add("add", start, first), sizes=(2,)))
        return p.graph()

    assert isinstance(searched(cut(90), cut(91)), Unknown)
    assert isinstance(searched(cut(0), cut(1)), Refuted)


def test_nothing_cast_to_whole_numbers_is_in_doubt():
    def cast(factor: float) -> Graph:
        p = Program()
        x = p.input("x", "f32", (4,))
        nothing = p.add("div", p.add("sub", x, x), p.add("sub", x, x))
        p.output("y", p.add("cast", p.add("mul", nothing, factor), dtype="i32"))
        return p.graph()

    assert isinstance(searched(cast(1.0), cast(2.0)), Unknown)


def test_doubt_passes_where_a_weight_is_made_in_pieces():
    call = Call(
        op="einsum",
        operands=(TensorType("f32", (2, 3)),),
        attrs={"spec": "ti,io->to"},
        declared=TensorType("f32", (2, 4)),
    )
    mark = np.array([[False, True, False], [False, False, False]])
    assert passed(call, [mark], [np.ones((2, 3))], np.ones((2, 4))).all()


def test_empty_and_scalar_programs_say_nothing():
    def sized(*shape: int) -> Graph:
        p = Program()
        p.output("y", p.add("mul", p.input("x", "f32", shape), 2.0))
        return p.graph()

    unproved = Unknown(reason=Reason.UNPROVED, outputs=(), assumptions=())
    for shape in ((), (0, 3), (1,)):
        graph = sized(*shape)
        assert isinstance(refute(graph, graph, with_itself(graph), unproved, Search(draws=7)), Unknown)


def test_a_place_that_rounding_moves_beyond_its_table_is_not_held_against_a_program():
    """x / 0.7 * 0.7 is x, and may be the next whole number when rounded up."""

    def looked_up(there_and_back: bool) -> Graph:
        p = Program()
        table, x = p.input("table", "f32", (3,)), p.counter(0, 3)
        place = p.add("cast", x, dtype="f64")
        if there_and_back:
            place = p.add("mul", p.add("div", place, 0.7), 0.7000000000000002)
        p.output("y", p.add("take", table, p.add("cast", p.add("ceil", place), dtype="i64"), axis=0))
        return p.graph()

    assert isinstance(searched(looked_up(there_and_back=False), looked_up(there_and_back=True)), Unknown)
