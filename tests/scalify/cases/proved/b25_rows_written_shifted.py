"""B25 as it should be: each rank looks for its own rows among all that are written."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph
from scalify.ir.mesh import RankInt

ROWS, WRITTEN, WIDTH = 8, 4, 3


def candidate() -> Graph:
    p = Program(tp=2)
    x, values = p.input("x", "f32", (ROWS // 2, WIDTH)), p.input("values", "f32", (WRITTEN // 2, WIDTH))
    first = p.constant(RankInt(base=0, terms=((1, 2, ROWS // 2),)), "i64")
    own = p.add("add", p.counter(0, ROWS // 2, WRITTEN), first)
    hit = p.add("cast", p.add("eq", own, p.input("rows", "i64", (WRITTEN,))), dtype="f32")
    free = p.add("eq", p.total(hit, 1, keepdims=True), 0.0)
    written = p.product("rw,wd->rd", hit, p.gathered(values, 0))
    p.output("y", p.add("add", written, p.add("where", free, x, 0.0)))
    return p.graph()


PAIR = replace(load_pair("unknown/b25_rows_written_unshifted"), verdict="proved", candidate=candidate())
