"""B61, other outcome: the gradient of the own term, times the number of ranks."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(dp=2)
    w, data = p.input("w", "f32", (4,), role="parameter"), p.input("data", "f32", (3, 4))
    angles = p.add("mul", data, w)
    p.output("loss", p.over_ranks(p.total(p.add("sin", angles), 0, 1)))
    seed = p.over_ranks(p.constant(1.0, "f32"))  # suspect
    p.output("dw", p.total(p.add("mul", p.add("mul", p.add("cos", angles), data), seed), 0))
    return p.graph()


PAIR = replace(load_pair("unknown/b61_gradient_of_own_term"), candidate=candidate())
