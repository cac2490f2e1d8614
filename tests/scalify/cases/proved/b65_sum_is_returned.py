"""B65 as it should be: what the all-reduce gives is what is returned."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(tp=2)
    x, w = p.input("x", "f32", (4, 3)), p.input("w", "f32", (3, 5), role="parameter")
    p.output("y", p.over_ranks(p.turned(p.product("ti,io->to", x, w), 1, 0)))
    return p.graph()


PAIR = replace(load_pair("unknown/b65_copy_is_reduced"), verdict="proved", candidate=candidate())
