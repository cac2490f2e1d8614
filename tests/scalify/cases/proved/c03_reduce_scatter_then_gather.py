"""Control: an all-reduce is a reduce-scatter and an all-gather."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    x, w = p.input("x", "f32", (4, 6)), p.input("w", "f32", (6, 10), role="parameter")
    p.output("y", p.product("bi,io->bo", x, w))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    x, w = p.input("x", "f32", (4, 3)), p.input("w", "f32", (3, 10), role="parameter")
    p.output("y", p.gathered(p.scattered(p.product("bi,io->bo", x, w), 0), 0))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": sharded(1), "w": sharded(0)},
    outputs={"y": replicated},
)
