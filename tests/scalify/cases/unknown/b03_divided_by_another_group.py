"""B03: a sum over data and context ranks is divided by the number of data ranks alone."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    p.output("grad", p.mean(p.input("grads", "f32", (4, 3)), 0))
    return p.graph()


def candidate() -> Graph:
    p = Program(dp=2, cp=2)
    scaled = p.add("mul", p.input("grads", "f32", (1, 3)), 2.0)
    total = p.over_ranks(p.shaped(scaled, 3), "dp", "cp")
    p.output("grad", p.add("div", total, 2.0))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"grads": sharded(0)},
    outputs={"grad": replicated},
)
