"""Control: a linear map cut by columns, an activation, a linear map cut by rows, one sum over ranks."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def feed_forward(tp: int) -> Graph:
    p = Program(tp=tp) if tp > 1 else Program()
    x = p.input("x", "f32", (5, 6))
    up = p.input("up", "f32", (12 // tp, 6), role="parameter")
    down = p.input("down", "f32", (6, 12 // tp), role="parameter")
    hidden = p.add("add", p.product("tm,fm->tf", x, up), p.input("b", "f32", (12 // tp,), role="parameter"))
    y = p.product("tf,mf->tm", p.add("gelu", hidden), down)
    p.output("y", p.over_ranks(y) if tp > 1 else y)
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=feed_forward(1),
    candidate=feed_forward(4),
    inputs={"x": replicated, "up": sharded(0), "b": sharded(0), "down": sharded(1)},
    outputs={"y": replicated},
)
