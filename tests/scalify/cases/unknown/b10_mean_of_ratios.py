"""B10: each rank divides by its own count of tokens before the mean over ranks."""

from scalify_cases import Pair, Program, positive, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    loss, count = p.input("loss", "f32", (2,)), p.input("count", "f32", (2,))
    p.output("loss", p.add("div", p.total(loss, 0), p.total(count, 0)))
    return p.graph()


def candidate() -> Graph:
    p = Program(dp=2)
    loss, count = p.input("loss", "f32", (1,)), p.input("count", "f32", (1,))
    own = p.add("div", p.total(loss, 0), p.total(count, 0))  # suspect
    p.output("loss", p.over_ranks(own, kind="avg"))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"loss": sharded(0), "count": sharded(0)},
    outputs={"loss": replicated},
    draws={"count": positive},
)
