"""B04: the router's loss is scaled by the count of local tokens and divided by that of all tokens."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph

TOKENS = 8


def baseline() -> Graph:
    p = Program()
    mean = p.mean(p.input("router", "f32", (TOKENS, 3)), 0)
    p.output("grad", p.add("div", p.add("mul", p.add("mul", mean, 0.01), float(TOKENS)), float(TOKENS)))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    mean = p.over_ranks(p.mean(p.input("router", "f32", (TOKENS // 2, 3)), 0), kind="avg")
    scaled = p.add("mul", p.add("mul", mean, 0.01), TOKENS / 2)  # suspect
    p.output("grad", p.add("div", scaled, float(TOKENS)))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"router": sharded(0)},
    outputs={"grad": replicated},
)
