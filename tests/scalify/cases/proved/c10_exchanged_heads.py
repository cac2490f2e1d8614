"""Control: sequence shards exchanged for head shards, attention, and exchanged back."""

from scalify_cases import Pair, Program, sharded

from scalify.ir.graph import Graph

BATCH, HEADS, TOKENS, DEPTH = 2, 4, 6, 5


def baseline() -> Graph:
    p = Program()
    q, k, v = (p.input(name, "f32", (BATCH, HEADS, TOKENS, DEPTH)) for name in "qkv")
    p.output("y", p.add("attention", q, k, v, scale=0.5, causal=True))
    return p.graph()


def candidate() -> Graph:
    p = Program(sp=2)
    q, k, v = (p.input(name, "f32", (BATCH, HEADS, TOKENS // 2, DEPTH)) for name in "qkv")
    heads = (p.exchanged(x, 1, 2) for x in (q, k, v))
    p.output("y", p.exchanged(p.add("attention", *heads, scale=0.5, causal=True), 2, 1))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"q": sharded(2), "k": sharded(2), "v": sharded(2)},
    outputs={"y": sharded(2)},
)
