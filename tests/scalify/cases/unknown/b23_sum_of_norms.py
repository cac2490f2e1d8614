"""B23: the norm of a sum, computed as the sum of the norms of its parts."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    x = p.total(p.input("x", "f32", (2, 6)), 0)
    p.output("norm", p.add("sqrt", p.total(p.add("square", x), 0)))
    return p.graph()


def candidate() -> Graph:
    p = Program(dp=2)
    x = p.total(p.input("x", "f32", (1, 6)), 0)
    squares = p.add("square", x)  # suspect
    p.output("norm", p.over_ranks(p.add("sqrt", p.total(squares, 0))))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": sharded(0)},
    outputs={"norm": replicated},
)
