"""B46 as it should be, with experts on two ranks."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    weights, experts = p.input("weights", "f32", (5, 4)), p.input("experts", "f32", (5, 4, 4))
    p.output("y", p.add("mul", p.product("te,ted->td", weights, experts), 2.5))
    return p.graph()


def candidate() -> Graph:
    p = Program(ep=2)
    weights, experts = p.input("weights", "f32", (5, 2)), p.input("experts", "f32", (5, 2, 4))
    p.output("y", p.over_ranks(p.product("te,ted->td", p.add("mul", weights, 2.5), experts)))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"weights": sharded(1), "experts": sharded(1)},
    outputs={"y": replicated},
)
