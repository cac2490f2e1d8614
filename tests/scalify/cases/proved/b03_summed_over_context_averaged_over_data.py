"""B03, as intended: a loss times the context ranks, averaged over all ranks, is a sum over context ranks
and a mean over data ranks."""

from scalify_cases import Pair, Program, replicated, sharded_on

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    grads = p.input("grads", "f32", (4, 6, 3))
    p.output("grad", p.mean(p.total(grads, 1), 0))
    return p.graph()


def candidate() -> Graph:
    p = Program(dp=2, cp=2)
    own = p.mean(p.total(p.input("grads", "f32", (2, 3, 3)), 1), 0)
    p.output("grad", p.over_ranks(p.add("mul", own, 2.0), "dp", "cp", kind="avg"))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"grads": sharded_on({0: ("dp",), 1: ("cp",)})},
    outputs={"grad": replicated},
)
