"""B61 as it should be: the gradients of all ranks' terms are summed."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(dp=2)
    w, data = p.input("w", "f32", (4,), role="parameter"), p.input("data", "f32", (3, 4))
    angles = p.add("mul", data, w)
    p.output("loss", p.over_ranks(p.total(p.add("sin", angles), 0, 1)))
    p.output("dw", p.over_ranks(p.total(p.add("mul", p.add("cos", angles), data), 0)))
    return p.graph()


PAIR = replace(
    load_pair("unknown/b61_gradient_of_own_term"), verdict="proved", candidate=candidate(), agreeing=()
)
