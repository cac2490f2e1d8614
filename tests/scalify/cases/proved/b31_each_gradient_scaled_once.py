"""B31 as it should be: each step's gradient is divided once, before it is accumulated."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph

COUNT = 4.0


def candidate() -> Graph:
    p = Program()
    first, second = p.input("first", "f32", (6,)), p.input("second", "f32", (6,))
    p.output("grad", p.add("add", p.add("div", first, COUNT), p.add("div", second, COUNT)))
    return p.graph()


PAIR = replace(
    load_pair("unknown/b31_accumulated_gradient_rescaled"), verdict="proved", candidate=candidate()
)
