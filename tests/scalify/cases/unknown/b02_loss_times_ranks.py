"""B02: every rank multiplies its loss by the number of ranks, and nothing divides by it again."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph

TOKENS = 8


def baseline() -> Graph:
    p = Program()
    p.output("grad", p.add("mul", p.total(p.input("grads", "f32", (TOKENS, 3)), 0), 1 / TOKENS))
    return p.graph()


def candidate() -> Graph:
    p = Program(cp=2)
    own = p.total(p.input("grads", "f32", (TOKENS // 2, 3)), 0)
    scaled = p.add("mul", own, 2.0)  # suspect
    p.output("grad", p.add("div", p.over_ranks(scaled), float(TOKENS)))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"grads": sharded(0)},
    outputs={"grad": replicated},
)
