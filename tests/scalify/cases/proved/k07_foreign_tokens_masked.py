"""A vocabulary-parallel embedding: tokens of other ranks read the first row, which then is set to zero."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph
from scalify.ir.mesh import RankInt

ROWS, WIDTH, TOKENS = 8, 3, 5


def candidate() -> Graph:
    p = Program(tp=2)
    table, tokens = p.input("table", "f32", (ROWS // 2, WIDTH)), p.input("tokens", "i64", (TOKENS,))
    moved = p.add("sub", tokens, p.constant(RankInt(base=0, terms=((1, 2, ROWS // 2),)), "i64"))
    own = p.add("and", p.add("ge", moved, 0), p.add("lt", moved, ROWS // 2))
    read = p.add("take", table, p.add("where", own, moved, 0), axis=0)
    p.output("y", p.over_ranks(p.add("where", p.shaped(own, TOKENS, 1), read, 0.0)))
    return p.graph()


PAIR = replace(load_pair("unknown/k07_foreign_tokens_not_masked"), verdict="proved", candidate=candidate())
