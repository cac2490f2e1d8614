"""A sum over ranks that hold different tokens, not different features, of the same product."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    x, w = p.input("x", "f32", (8, 6)), p.input("w", "f32", (6, 4), role="parameter")
    p.output("y", p.product("ti,io->to", x, w))
    return p.graph()


def candidate() -> Graph:
    p = Program(sp=2)
    x, w = p.input("x", "f32", (4, 6)), p.input("w", "f32", (6, 4), role="parameter")
    p.output("y", p.over_ranks(p.product("ti,io->to", x, w)))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": sharded(0), "w": replicated},
    outputs={"y": sharded(0)},
)
