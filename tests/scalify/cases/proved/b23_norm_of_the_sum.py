"""B23 as it should be: the parts are summed before anything that is not linear."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(dp=2)
    x = p.over_ranks(p.total(p.input("x", "f32", (1, 6)), 0))
    p.output("norm", p.add("sqrt", p.total(p.add("square", x), 0)))
    return p.graph()


PAIR = replace(
    load_pair("unknown/b23_sum_of_norms"),
    verdict="proved",
    candidate=candidate(),
)
