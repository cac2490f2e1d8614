"""B36: a matrix is overwritten by its transpose row by row, and later rows read what is overwritten."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    p.output("x", p.turned(p.input("x", "f32", (3, 3)), 1, 0))
    return p.graph()


def candidate() -> Graph:
    p = Program()
    x = p.input("x", "f32", (3, 3))
    for row in range(3):
        column = p.cut(x, 1, row, 1)  # suspect
        x = p.add("update_slice", x, p.turned(column, 1, 0), starts=(row, 0))  # suspect
    p.output("x", x)
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": replicated},
    outputs={"x": replicated},
)
