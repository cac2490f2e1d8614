"""B15: replicated gradients, marked as sharded, enter the squared norm once per rank."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    p.output("norm", p.add("sqrt", p.total(p.add("square", p.input("g", "f32", (4, 6))), 0, 1)))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    own = p.total(p.add("square", p.input("g", "f32", (4, 6))), 0, 1)
    p.output("norm", p.add("sqrt", p.over_ranks(own)))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"g": replicated},
    outputs={"norm": replicated},
)
