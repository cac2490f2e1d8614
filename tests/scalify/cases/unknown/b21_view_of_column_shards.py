"""B21: a shard of columns is reshaped as if its elements stood together in the whole tensor."""

from scalify_cases import Pair, Program, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    p.output("y", p.shaped(p.input("x", "f32", (12, 8)), 16, 6))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=4)
    p.output("y", p.shaped(p.input("x", "f32", (12, 2)), 4, 6))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": sharded(1)},
    outputs={"y": sharded(0)},
)
