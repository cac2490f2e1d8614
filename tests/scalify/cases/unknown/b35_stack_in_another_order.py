"""B35 of the same size: a stack of slices in another order is replaced by what was sliced."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    x = p.input("x", "f32", (3, 3))
    p.output("y", p.joined(1, *(p.cut(x, 1, column, 1) for column in (0, 2, 1))))
    return p.graph()


def candidate() -> Graph:
    p = Program()
    p.output("y", p.input("x", "f32", (3, 3)))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": replicated},
    outputs={"y": replicated},
)
