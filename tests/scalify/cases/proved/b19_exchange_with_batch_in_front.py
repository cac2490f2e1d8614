"""B19 as it should be: what arrives is put in the order batch, source, row."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph

TOKENS, WIDTH = 6, 8


def candidate() -> Graph:
    p = Program(sp=2)
    x = p.add("mul", p.input("x", "f32", (2, TOKENS // 2, WIDTH)), 2.0)
    rows = p.shaped(x, TOKENS, 2, WIDTH // 2)
    sent = p.shaped(p.turned(rows, 1, 0, 2), 2 * TOKENS, WIDTH // 2)
    arrived = p.shaped(p.exchanged(sent, 0, 0), 2, 2, TOKENS // 2, WIDTH // 2)
    p.output("y", p.shaped(p.turned(arrived, 1, 0, 2, 3), 2, TOKENS, WIDTH // 2))
    return p.graph()


PAIR = replace(
    load_pair("unknown/b19_exchange_mixes_batch_and_sequence"), verdict="proved", candidate=candidate()
)
