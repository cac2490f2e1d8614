"""B65: the all-reduce acts on a contiguous copy, and what is returned is the part that was not summed."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    x, w = p.input("x", "f32", (4, 6)), p.input("w", "f32", (6, 5), role="parameter")
    p.output("y", p.turned(p.product("ti,io->to", x, w), 1, 0))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    x, w = p.input("x", "f32", (4, 3)), p.input("w", "f32", (3, 5), role="parameter")
    turned = p.turned(p.product("ti,io->to", x, w), 1, 0)  # suspect
    p.over_ranks(turned)
    p.output("y", turned)
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": sharded(1), "w": sharded(0)},
    outputs={"y": replicated},
)
