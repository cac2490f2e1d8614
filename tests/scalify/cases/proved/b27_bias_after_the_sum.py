"""B27, forward, as usual: the bias is added once the sum is there."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(tp=2)
    x, w = p.input("x", "f32", (4, 3)), p.input("w", "f32", (3, 10), role="parameter")
    total = p.over_ranks(p.product("bi,io->bo", x, w))
    p.output("y", p.add("add", total, p.input("b", "f32", (10,), role="parameter")))
    return p.graph()


PAIR = replace(load_pair("unknown/b27_bias_under_pending_sum"), verdict="proved", candidate=candidate())
