"""B38 as it should be: the rows that are put are those of a copy."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph

ROWS, WIDTH = 3, 2


def candidate() -> Graph:
    p = Program()
    x, places = p.input("x", "f32", (ROWS, WIDTH)), p.input("places", "i64", (ROWS,))
    copy = p.turned(p.turned(x, 1, 0), 1, 0)
    p.output("x", p.add("index_put", x, copy, places))
    return p.graph()


PAIR = replace(load_pair("unknown/b38_index_put_into_itself"), verdict="proved", candidate=candidate())
