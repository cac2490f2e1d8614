"""B16: an expert sees the tokens of all ranks, and its gradient is divided by the number of its copies, 1."""

from scalify_cases import Pair, Program, sharded

from scalify.ir.graph import Graph

RANKS = EXPERTS = 2


def baseline() -> Graph:
    p = Program()
    x, grad = p.input("x", "f32", (RANKS, EXPERTS, 3, 4)), p.input("grad", "f32", (RANKS, EXPERTS, 3, 5))
    p.output("dw", p.add("div", p.product("reti,reto->eio", x, grad), float(RANKS)))
    return p.graph()


def candidate() -> Graph:
    p = Program(ep=2)
    x, grad = p.input("x", "f32", (1, EXPERTS, 3, 4)), p.input("grad", "f32", (1, EXPERTS, 3, 5))
    arrived = (p.exchanged(part, 1, 0) for part in (x, grad))
    p.output("dw", p.product("reti,reto->eio", *arrived))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": sharded(0), "grad": sharded(0)},
    outputs={"dw": sharded(0)},
)
