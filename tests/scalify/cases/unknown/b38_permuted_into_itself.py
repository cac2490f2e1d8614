"""B38: rows are put at permuted places of the tensor they come from, one after the other, in place."""

from scalify_cases import Pair, Program, exactly, replicated

from scalify.ir.graph import Graph, NodeId

ROWS, WIDTH = 3, 2


def put(p: Program, into: NodeId, source: NodeId, places: NodeId, row: int) -> NodeId:
    here = p.add("eq", p.counter(0, ROWS, 1), p.shaped(p.cut(places, 0, row, 1), 1, 1))
    return p.add("where", here, p.cut(source, 0, row, 1), into)


def baseline() -> Graph:
    p = Program()
    x, places = p.input("x", "f32", (ROWS, WIDTH)), p.input("places", "i64", (ROWS,))
    y = x
    for row in range(ROWS):
        y = put(p, y, x, places, row)
    p.output("x", y)
    return p.graph()


def candidate() -> Graph:
    p = Program()
    x, places = p.input("x", "f32", (ROWS, WIDTH)), p.input("places", "i64", (ROWS,))
    for row in range(ROWS):
        here = p.add("eq", p.counter(0, ROWS, 1), p.shaped(p.cut(places, 0, row, 1), 1, 1))
        x = p.add("where", here, p.cut(x, 0, row, 1), x)  # suspect
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
