"""B46: a factor has moved into the routing weights, and still multiplies what the experts give."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    weights, experts = p.input("weights", "f32", (5, 3)), p.input("experts", "f32", (5, 3, 4))
    p.output("y", p.add("mul", p.product("te,ted->td", weights, experts), 2.5))
    return p.graph()


def candidate() -> Graph:
    p = Program()
    weights, experts = p.input("weights", "f32", (5, 3)), p.input("experts", "f32", (5, 3, 4))
    mixed = p.product("te,ted->td", p.add("mul", weights, 2.5), experts)  # suspect
    p.output("y", p.add("mul", mixed, 2.5))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"weights": replicated, "experts": replicated},
    outputs={"y": replicated},
)
