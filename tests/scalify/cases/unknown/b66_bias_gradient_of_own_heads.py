"""B66: of a replicated key projection, the weight's gradient is summed over ranks, the bias's is not."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    x, grad = p.input("x", "f32", (5, 6)), p.input("grad", "f32", (4, 5, 3))
    p.output("dw", p.product("ti,htd->id", x, grad))
    p.output("db", p.total(grad, 0, 1))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    x, grad = p.input("x", "f32", (5, 6)), p.input("grad", "f32", (2, 5, 3))
    p.output("dw", p.over_ranks(p.product("ti,htd->id", x, grad)))
    p.output("db", p.total(grad, 0, 1))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": replicated, "grad": sharded(0)},
    outputs={"dw": replicated, "db": replicated},
    agreeing=("dw",),
)
