"""B32 with rounding as an operation: each rank's gradient is rounded before the sum, not after it."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph, NodeId


def coarse(p: Program, x: NodeId) -> NodeId:
    return p.add("div", p.add("round", p.add("mul", x, 8.0)), 8.0)


def baseline() -> Graph:
    p = Program()
    p.output("grad", coarse(p, p.total(p.input("grads", "f32", (8, 5)), 0)))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    own = p.total(p.input("grads", "f32", (4, 5)), 0)
    low = p.add("div", p.add("round", p.add("mul", own, 8.0)), 8.0)  # suspect
    p.output("grad", p.over_ranks(low))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"grads": sharded(0)},
    outputs={"grad": replicated},
)
