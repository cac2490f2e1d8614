"""B27, backward: the gradient of a row-parallel product is held by every rank, and yet summed over ranks."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    x, grad = p.input("x", "f32", (5, 6)), p.input("grad", "f32", (5, 4))
    p.output("dw", p.product("ti,to->io", x, grad))
    p.output("db", p.total(grad, 0))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    x, grad = p.input("x", "f32", (5, 3)), p.input("grad", "f32", (5, 4))
    again = p.over_ranks(grad)  # suspect
    p.output("dw", p.product("ti,to->io", x, again))
    p.output("db", p.total(grad, 0))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": sharded(1), "grad": replicated},
    outputs={"dw": sharded(0), "db": replicated},
    agreeing=("db",),
)
