"""Control: a bias that rank 0 alone adds before the sum over ranks."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    x, w = p.input("x", "f32", (4, 6)), p.input("w", "f32", (6, 10), role="parameter")
    p.output("y", p.add("add", p.product("bi,io->bo", x, w), p.input("b", "f32", (10,), role="parameter")))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    x, w = p.input("x", "f32", (4, 3)), p.input("w", "f32", (3, 10), role="parameter")
    bias = p.input("b", "f32", (10,), role="parameter")
    own = p.add("where", p.add("eq", p.place_on("tp"), 0), bias, 0.0)
    p.output("y", p.over_ranks(p.add("add", p.product("bi,io->bo", x, w), own)))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": sharded(1), "w": sharded(0), "b": replicated},
    outputs={"y": replicated},
)
