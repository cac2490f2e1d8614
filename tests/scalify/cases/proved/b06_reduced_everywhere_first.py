"""B06 as it should be: gradients are reduced over data ranks everywhere, then summed over stages."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(pp=2, dp=2)
    reduced = p.over_ranks(p.shaped(p.input("grads", "f32", (1, 3)), 3), "dp", kind="avg")
    p.output("grad", p.over_ranks(reduced, "pp"))
    return p.graph()


PAIR = replace(load_pair("unknown/b06_reduced_copy_on_another_rank"), verdict="proved", candidate=candidate())
