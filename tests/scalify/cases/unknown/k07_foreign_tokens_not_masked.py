"""A vocabulary-parallel embedding in which tokens of other ranks read the first row instead of nothing."""

from scalify_cases import Pair, Program, below, replicated, sharded

from scalify.ir.graph import Graph, NodeId
from scalify.ir.mesh import RankInt

ROWS, WIDTH, TOKENS = 8, 3, 5


def baseline() -> Graph:
    p = Program()
    table, tokens = p.input("table", "f32", (ROWS, WIDTH)), p.input("tokens", "i64", (TOKENS,))
    p.output("y", p.add("take", table, tokens, axis=0))
    return p.graph()


def own_tokens(p: Program, tokens: NodeId) -> tuple[NodeId, NodeId]:
    """Tokens counted from the rank's first row, and whether they are the rank's."""
    first = p.constant(RankInt(base=0, terms=((1, 2, ROWS // 2),)), "i64")
    moved = p.add("sub", tokens, first)
    return moved, p.add("and", p.add("ge", moved, 0), p.add("lt", moved, ROWS // 2))


def candidate() -> Graph:
    p = Program(tp=2)
    table, tokens = p.input("table", "f32", (ROWS // 2, WIDTH)), p.input("tokens", "i64", (TOKENS,))
    moved, own = own_tokens(p, tokens)
    read = p.add("take", table, p.add("where", own, moved, 0), axis=0)  # suspect
    p.output("y", p.over_ranks(read))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"table": sharded(0), "tokens": replicated},
    outputs={"y": replicated},
    draws={"tokens": below(ROWS)},
)
MISPLACED = "counting from the first row of the rank is blamed, which is right"
