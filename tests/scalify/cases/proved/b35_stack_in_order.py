"""B35's legal case: a stack of all slices in order is what was sliced."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    x = p.input("x", "f32", (3, 3))
    p.output("y", p.joined(1, *(p.cut(x, 1, column, 1) for column in (0, 1, 2))))
    return p.graph()


PAIR = replace(load_pair("unknown/b35_stack_in_another_order"), verdict="proved", baseline=baseline())
