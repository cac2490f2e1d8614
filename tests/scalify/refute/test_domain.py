"""What is read off a program about the values that its inputs may take."""

from scalify_cases import Program

from scalify.ir.graph import NodeId
from scalify.refute.domain import domains


def test_rows_of_a_table_through_what_only_moves_them():
    p = Program()
    table, ids = p.input("table", "f32", (7, 3)), p.input("ids", "i64", (2, 4))
    p.output("y", p.add("take", table, p.turned(p.shaped(ids, 4, 2), 1, 0), axis=0))
    assert domains(p.graph())[ids].size == 7


def test_of_two_tables_the_shorter_says():
    p = Program()
    ids = p.input("ids", "i64", (4,))
    for rows in (9, 5):
        p.output(f"y{rows}", p.add("take", p.input(f"t{rows}", "f32", (rows, 2)), ids, axis=0))
    assert domains(p.graph())[ids].size == 5


def test_written_rows_differ_unless_they_add_up():
    for mode, distinct in (("set", True), ("add", False)):
        p = Program()
        x, ids, src = p.input("x", "f32", (6, 2)), p.input("ids", "i64", (3,)), p.input("src", "f32", (3, 2))
        p.output("y", p.add("index_put", x, src, ids, mode=mode))
        assert domains(p.graph())[ids].distinct is distinct


def test_what_is_compared_is_tried_on_both_sides_of_the_number():
    p = Program()
    positions = p.input("positions", "i64", (8,))
    p.output("y", p.add("lt", p.add("sub", positions, p.counter(0, 8)), 4))
    assert {3.0, 4.0, 5.0} <= set(domains(p.graph())[positions].edges)


def test_roots_and_divisors_are_positive_and_others_are_not():
    p = Program()
    x, variance, count = p.input("x", "f32", (4,)), p.input("v", "f32", (4,)), p.input("n", "f32", ())
    p.output("y", p.add("div", p.add("mul", x, p.add("rsqrt", variance)), count))
    found = domains(p.graph())
    assert (found[x].positive, found[variance].positive, found[count].positive) == (False, True, True)


def test_every_input_has_a_domain():
    p = Program()
    x = p.input("x", "bool", (4,))
    p.output("y", x)
    assert set(domains(p.graph())) == {NodeId("x")}
