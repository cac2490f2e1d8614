"""B40: gate and up rows in one matrix, sharded as if they were one: rank 0 gets the gate, rank 1 the rest."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph

WIDTH, HIDDEN = 6, 8


def gated(tp: int) -> Graph:
    p = Program(tp=tp) if tp > 1 else Program()
    x = p.input("x", "f32", (5, WIDTH))
    w = p.input("w", "f32", (2 * HIDDEN // tp, WIDTH), role="parameter")
    both = p.product("tm,fm->tf", x, w)
    gate, up = p.cut(both, 1, 0, HIDDEN // tp), p.cut(both, 1, HIDDEN // tp, HIDDEN // tp)  # suspect
    y = p.add("mul", p.add("silu", gate), up)
    p.output("y", y)
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=gated(1),
    candidate=gated(2),
    inputs={"x": replicated, "w": sharded(0)},
    outputs={"y": sharded(1)},
)
