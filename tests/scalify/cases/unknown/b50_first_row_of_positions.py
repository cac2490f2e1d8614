"""B50: angles of three sections have positions of their own (time, height, width); only time is used."""

from scalify_cases import Pair, Program, positive, replicated

from scalify.ir.graph import Graph

TOKENS = 4


def baseline() -> Graph:
    p = Program()
    positions, rates = p.input("positions", "f32", (3, TOKENS)), p.input("rates", "f32", (6,))
    sections = (
        p.product("it,j->tj", p.cut(positions, 0, row, 1), p.cut(rates, 0, 2 * row, 2)) for row in range(3)
    )
    p.output("cos", p.add("cos", p.joined(1, *sections)))
    return p.graph()


def candidate() -> Graph:
    p = Program()
    positions, rates = p.input("positions", "f32", (3, TOKENS)), p.input("rates", "f32", (6,))
    time = p.cut(positions, 0, 0, 1)  # suspect
    p.output("cos", p.add("cos", p.product("it,j->tj", time, rates)))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"positions": replicated, "rates": replicated},
    outputs={"cos": replicated},
    draws={"positions": positive, "rates": positive},
)
