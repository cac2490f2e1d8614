"""B19 with a batch of one: there is nothing to interleave, and the exchange is right."""

from scalify_cases import Pair, Program, sharded

from scalify.ir.graph import Graph

TOKENS, WIDTH = 6, 8


def baseline() -> Graph:
    p = Program()
    p.output("y", p.add("mul", p.input("x", "f32", (1, TOKENS, WIDTH)), 2.0))
    return p.graph()


def candidate() -> Graph:
    p = Program(sp=2)
    x = p.add("mul", p.input("x", "f32", (1, TOKENS // 2, WIDTH)), 2.0)
    rows = p.shaped(x, TOKENS // 2, 2, WIDTH // 2)
    sent = p.shaped(p.turned(rows, 1, 0, 2), TOKENS, WIDTH // 2)
    p.output("y", p.shaped(p.exchanged(sent, 0, 0), 1, TOKENS, WIDTH // 2))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": sharded(1)},
    outputs={"y": sharded(2)},
)
