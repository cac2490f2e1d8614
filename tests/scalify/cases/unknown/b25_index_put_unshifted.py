"""B25 as the operator itself: index_put into shards, with row numbers of the whole tensor."""

from scalify_cases import Pair, Program, distinct, replicated, sharded

from scalify.ir.graph import Graph

ROWS, WRITTEN, WIDTH = 8, 4, 3


def baseline() -> Graph:
    p = Program()
    x, values = p.input("x", "f32", (ROWS, WIDTH)), p.input("values", "f32", (WRITTEN, WIDTH))
    p.output("y", p.add("index_put", x, values, p.input("rows", "i64", (WRITTEN,))))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    x, values = p.input("x", "f32", (ROWS // 2, WIDTH)), p.input("values", "f32", (WRITTEN // 2, WIDTH))
    rows = p.own_piece(p.input("rows", "i64", (WRITTEN,)), 0)
    p.output("y", p.add("index_put", x, values, rows))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": sharded(0), "values": sharded(0), "rows": replicated},
    outputs={"y": sharded(0)},
    draws={"rows": distinct(ROWS // 2)},
)
