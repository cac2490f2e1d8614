"""B27, forward: a bias is added to every rank's part of a sum."""

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
    own = p.add("add", p.product("bi,io->bo", x, w), bias)  # suspect
    p.output("y", p.over_ranks(own))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": sharded(1), "w": sharded(0), "b": replicated},
    outputs={"y": replicated},
)
