"""Control: means of micro-batches of 2 and 6 tokens, weighted by their counts."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    p.output("grad", p.mean(p.input("g", "f32", (8, 3)), 0))
    return p.graph()


def candidate() -> Graph:
    p = Program()
    g = p.input("g", "f32", (8, 3))
    first = p.add("mul", p.mean(p.cut(g, 0, 0, 2), 0), 2.0)
    both = p.add("add", first, p.add("mul", p.mean(p.cut(g, 0, 2, 6), 0), 6.0))
    p.output("grad", p.add("div", both, 8.0))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"g": replicated},
    outputs={"grad": replicated},
)
