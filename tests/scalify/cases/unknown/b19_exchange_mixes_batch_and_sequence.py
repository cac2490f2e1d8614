"""B19: an all-to-all whose chunks do not stand before the batch: for two sequences, rows interleave."""

from scalify_cases import Pair, Program, sharded

from scalify.ir.graph import Graph

TOKENS, WIDTH = 6, 8


def baseline(batch: int) -> Graph:
    p = Program()
    p.output("y", p.add("mul", p.input("x", "f32", (batch, TOKENS, WIDTH)), 2.0))
    return p.graph()


def candidate(batch: int) -> Graph:
    p = Program(sp=2)
    x = p.add("mul", p.input("x", "f32", (batch, TOKENS // 2, WIDTH)), 2.0)
    rows = p.shaped(x, batch * TOKENS // 2, 2, WIDTH // 2)
    sent = p.shaped(p.turned(rows, 1, 0, 2), batch * TOKENS, WIDTH // 2)
    arrived = p.exchanged(sent, 0, 0)
    p.output("y", p.shaped(arrived, batch, TOKENS, WIDTH // 2))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(2),
    candidate=candidate(2),
    inputs={"x": sharded(1)},
    outputs={"y": sharded(2)},
)
