"""B32 with rounding as an operation, as it should be: the sum is rounded, not what is summed."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(tp=2)
    total = p.over_ranks(p.total(p.input("grads", "f32", (4, 5)), 0))
    p.output("grad", p.add("div", p.add("round", p.add("mul", total, 8.0)), 8.0))
    return p.graph()


PAIR = replace(load_pair("unknown/b32_rounded_before_the_reduction"), verdict="proved", candidate=candidate())
