"""B69 as it should be: the first stage alone counts the gradient of the tied weight."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(pp=2)
    tied, others = p.input("tied", "f32", (3, 4)), p.input("others", "f32", (1, 5))
    own = p.add("where", p.add("eq", p.place_on("pp"), 0), p.total(p.add("square", tied), 0, 1), 0.0)
    squares = p.add("add", own, p.total(p.add("square", others), 0, 1))
    p.output("norm", p.add("sqrt", p.over_ranks(squares)))
    return p.graph()


PAIR = replace(load_pair("unknown/b69_tied_weight_in_norm_twice"), verdict="proved", candidate=candidate())
