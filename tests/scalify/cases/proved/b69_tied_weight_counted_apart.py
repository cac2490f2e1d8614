"""B69, right in another way: what both stages hold is not summed over stages."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(pp=2)
    tied, others = p.input("tied", "f32", (3, 4)), p.input("others", "f32", (1, 5))
    of_stages = p.over_ranks(p.total(p.add("square", others), 0, 1))
    p.output("norm", p.add("sqrt", p.add("add", p.total(p.add("square", tied), 0, 1), of_stages)))
    return p.graph()


PAIR = replace(load_pair("unknown/b69_tied_weight_in_norm_twice"), verdict="proved", candidate=candidate())
