"""B27, backward, as it should be: every rank uses the gradient that it holds."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(tp=2)
    x, grad = p.input("x", "f32", (5, 3)), p.input("grad", "f32", (5, 4))
    p.output("dw", p.product("ti,to->io", x, grad))
    p.output("db", p.total(grad, 0))
    return p.graph()


PAIR = replace(
    load_pair("unknown/b27_gradient_reduced_once_too_often"),
    verdict="proved",
    candidate=candidate(),
    agreeing=(),
)
