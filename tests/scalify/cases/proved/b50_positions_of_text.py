"""B50 for text alone: where the three rows are the same, the first may stand for all."""

from scalify_cases import Pair, Program, positive, replicated

from scalify.ir.graph import Graph, NodeId

TOKENS = 4


def rows(p: Program) -> tuple[NodeId, NodeId]:
    text = p.input("text", "f32", (TOKENS,))
    rates = p.input("rates", "f32", (6,))
    return p.add("broadcast", text, shape=(3, TOKENS), dims=(1,)), rates


def baseline() -> Graph:
    p = Program()
    positions, rates = rows(p)
    sections = (
        p.product("it,j->tj", p.cut(positions, 0, row, 1), p.cut(rates, 0, 2 * row, 2)) for row in range(3)
    )
    p.output("cos", p.add("cos", p.joined(1, *sections)))
    return p.graph()


def candidate() -> Graph:
    p = Program()
    positions, rates = rows(p)
    p.output("cos", p.add("cos", p.product("it,j->tj", p.cut(positions, 0, 0, 1), rates)))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"text": replicated, "rates": replicated},
    outputs={"cos": replicated},
    draws={"text": positive, "rates": positive},
)
