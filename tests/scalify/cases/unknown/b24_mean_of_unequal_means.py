"""B24: two ranks hold two rows and one row, and their means are averaged as if they were equal."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    p.output("mean", p.add("div", p.total(p.input("x", "f32", (3, 4)), 0, 1), 12.0))
    return p.graph()


def candidate() -> Graph:
    p = Program()
    x = p.input("x", "f32", (3, 4))
    first, second = p.mean(p.cut(x, 0, 0, 2), 0, 1), p.mean(p.cut(x, 0, 2, 1), 0, 1)  # suspect
    both = p.add("add", first, second)  # suspect
    p.output("mean", p.add("div", both, 2.0))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": replicated},
    outputs={"mean": replicated},
)
