"""B27, forward, as it should be: every rank adds its share of the bias."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(tp=2)
    x, w = p.input("x", "f32", (4, 3)), p.input("w", "f32", (3, 10), role="parameter")
    share = p.add("div", p.input("b", "f32", (10,), role="parameter"), 2.0)
    p.output("y", p.over_ranks(p.add("add", p.product("bi,io->bo", x, w), share)))
    return p.graph()


PAIR = replace(load_pair("unknown/b27_bias_under_pending_sum"), verdict="proved", candidate=candidate())
