"""B38 as the operator itself: index_put of single rows that reads what the row before has overwritten."""

from scalify_cases import Pair, Program, exactly, replicated

from scalify.ir.graph import Graph

ROWS, WIDTH = 3, 2


def baseline() -> Graph:
    p = Program()
    x, places = p.input("x", "f32", (ROWS, WIDTH)), p.input("places", "i64", (ROWS,))
    p.output("x", p.add("index_put", x, x, places))
    return p.graph()


def candidate() -> Graph:
    p = Program()
    x, places = p.input("x", "f32", (ROWS, WIDTH)), p.input("places", "i64", (ROWS,))
    for row in range(ROWS):
        x = p.add("index_put", x, p.cut(x, 0, row, 1), p.cut(places, 0, row, 1))  # suspect
    p.output("x", x)
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": replicated, "places": replicated},
    outputs={"x": replicated},
    draws={"places": exactly(1, 2, 0)},
)
