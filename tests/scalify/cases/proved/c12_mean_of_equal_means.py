"""Control: the mean of the means of equal shards (B24 with equal shards)."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    p.output("mean", p.mean(p.input("x", "f32", (4, 3)), 0, 1))
    return p.graph()


def candidate() -> Graph:
    p = Program(dp=2)
    p.output("mean", p.over_ranks(p.mean(p.input("x", "f32", (2, 3)), 0, 1), kind="avg"))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": sharded(0)},
    outputs={"mean": replicated},
)
