"""B66 as it should be: both gradients are summed over ranks."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(tp=2)
    x, grad = p.input("x", "f32", (5, 6)), p.input("grad", "f32", (2, 5, 3))
    p.output("dw", p.over_ranks(p.product("ti,htd->id", x, grad)))
    p.output("db", p.over_ranks(p.total(grad, 0, 1)))
    return p.graph()


PAIR = replace(
    load_pair("unknown/b66_bias_gradient_of_own_heads"), verdict="proved", candidate=candidate(), agreeing=()
)
