"""B35: a stack of some slices is replaced by what was sliced: too large."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    x = p.input("x", "f32", (3, 4))
    p.output("y", p.joined(1, p.cut(x, 1, 0, 1), p.cut(x, 1, 1, 1)))
    return p.graph()


def candidate() -> Graph:
    p = Program()
    p.output("y", p.input("x", "f32", (3, 4)))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": replicated},
    outputs={"y": replicated},
)
