"""B69: both stages hold the gradient of a tied weight, and both count it in the norm."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    tied, others = p.input("tied", "f32", (3, 4)), p.input("others", "f32", (2, 5))
    squares = p.add("add", p.total(p.add("square", tied), 0, 1), p.total(p.add("square", others), 0, 1))
    p.output("norm", p.add("sqrt", squares))
    return p.graph()


def candidate() -> Graph:
    p = Program(pp=2)
    tied, others = p.input("tied", "f32", (3, 4)), p.input("others", "f32", (1, 5))
    own = p.total(p.add("square", tied), 0, 1)
    squares = p.add("add", own, p.total(p.add("square", others), 0, 1))  # suspect
    p.output("norm", p.add("sqrt", p.over_ranks(squares)))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"tied": replicated, "others": sharded(0)},
    outputs={"norm": replicated},
)
