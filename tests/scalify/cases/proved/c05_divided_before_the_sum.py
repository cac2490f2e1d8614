"""Control: every rank divides by the number of all elements, then the sum is over ranks."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    p.output("y", p.add("div", p.total(p.input("x", "f32", (12, 3)), 0), 12.0))
    return p.graph()


def candidate() -> Graph:
    p = Program(dp=4)
    p.output("y", p.over_ranks(p.total(p.add("div", p.input("x", "f32", (3, 3)), 12.0), 0)))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": sharded(0)},
    outputs={"y": replicated},
)
