"""B03 as it should be: a sum over data and context ranks is divided by their number."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(dp=2, cp=2)
    total = p.over_ranks(p.shaped(p.input("grads", "f32", (1, 3)), 3), "dp", "cp")
    p.output("grad", p.add("div", total, 4.0))
    return p.graph()


PAIR = replace(load_pair("unknown/b03_divided_by_another_group"), verdict="proved", candidate=candidate())
