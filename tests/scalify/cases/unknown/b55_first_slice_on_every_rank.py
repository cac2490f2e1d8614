"""B55: the loader takes the rank for 0, and all ranks hold the first rows of the weight."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    x, w = p.input("x", "f32", (5, 6)), p.input("w", "f32", (8, 6), role="parameter")
    p.output("y", p.product("tm,fm->tf", x, w))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    x, w = p.input("x", "f32", (5, 6)), p.input("w", "f32", (8, 6), role="parameter")
    own = p.cut(w, 0, 0, 4)  # suspect
    p.output("y", p.product("tm,fm->tf", x, own))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": replicated, "w": replicated},
    outputs={"y": sharded(1)},
)
