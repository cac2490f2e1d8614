"""B10 where all ranks have the same count: the mean of ratios is the ratio of sums."""

from scalify_cases import Pair, Program, positive, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    loss, count = p.input("loss", "f32", (2,)), p.input("count", "f32", ())
    p.output("loss", p.add("div", p.total(loss, 0), p.add("mul", count, 2.0)))
    return p.graph()


def candidate() -> Graph:
    p = Program(dp=2)
    loss, count = p.input("loss", "f32", (1,)), p.input("count", "f32", ())
    p.output("loss", p.over_ranks(p.add("div", p.total(loss, 0), count), kind="avg"))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"loss": sharded(0), "count": replicated},
    outputs={"loss": replicated},
    draws={"count": positive},
)
