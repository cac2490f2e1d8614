"""B17: every rank updates and hands out the first shard, as if it were its own."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    weight, grad = p.input("weight", "f32", (8,)), p.input("grad", "f32", (8,))
    p.output("weight", p.add("sub", weight, p.add("mul", grad, 0.125)))
    return p.graph()


def candidate() -> Graph:
    p = Program(dp=2)
    weight, grad = p.input("weight", "f32", (8,)), p.input("grad", "f32", (8,))
    updated = p.add("sub", p.cut(weight, 0, 0, 4), p.add("mul", p.cut(grad, 0, 0, 4), 0.125))
    p.output("weight", p.gathered(updated, 0))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"weight": replicated, "grad": replicated},
    outputs={"weight": replicated},
)
