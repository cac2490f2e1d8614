"""B25: rows of the whole tensor are written at those numbers of each rank's own rows."""

from scalify_cases import Pair, Program, distinct, replicated, sharded

from scalify.ir.graph import Graph, NodeId

ROWS, WRITTEN, WIDTH = 8, 4, 3


def placed(p: Program, x: NodeId, hit: NodeId, values: NodeId) -> NodeId:
    written = p.product("rw,wd->rd", p.add("cast", hit, dtype="f32"), values)
    free = p.add("eq", p.total(p.add("cast", hit, dtype="f32"), 1, keepdims=True), 0.0)
    return p.add("add", written, p.add("where", free, x, 0.0))


def baseline() -> Graph:
    p = Program()
    x, values = p.input("x", "f32", (ROWS, WIDTH)), p.input("values", "f32", (WRITTEN, WIDTH))
    rows = p.input("rows", "i64", (WRITTEN,))
    p.output("y", placed(p, x, p.add("eq", p.counter(0, ROWS, WRITTEN), rows), values))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    x, values = p.input("x", "f32", (ROWS // 2, WIDTH)), p.input("values", "f32", (WRITTEN // 2, WIDTH))
    rows = p.own_piece(p.input("rows", "i64", (WRITTEN,)), 0)
    hit = p.add("eq", p.counter(0, ROWS // 2, WRITTEN // 2), rows)  # suspect
    p.output("y", placed(p, x, hit, values))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": sharded(0), "values": sharded(0), "rows": replicated},
    outputs={"y": sharded(0)},
    draws={"rows": distinct(ROWS)},
)
