"""B15 as it should be: the squares of replicated gradients are not summed over ranks."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(tp=2)
    p.output("norm", p.add("sqrt", p.total(p.add("square", p.input("g", "f32", (4, 6))), 0, 1)))
    return p.graph()


PAIR = replace(load_pair("unknown/b15_replicated_weight_in_norm"), verdict="proved", candidate=candidate())
