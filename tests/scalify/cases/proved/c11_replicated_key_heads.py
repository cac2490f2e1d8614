"""Control: four ranks share two key heads; each rank holds one of them and its own query heads."""

from scalify_cases import Pair, Program, sharded

from scalify.ir.graph import Graph

TOKENS, DEPTH = 6, 5


def baseline() -> Graph:
    p = Program()
    q = p.input("q", "f32", (8, TOKENS, DEPTH))
    k, v = (p.input(name, "f32", (2, TOKENS, DEPTH)) for name in "kv")
    p.output("y", p.add("attention", q, k, v, scale=0.5, causal=True))
    return p.graph()


def candidate() -> Graph:
    p = Program(kv=2, copy=2)
    q = p.input("q", "f32", (2, TOKENS, DEPTH))
    k, v = (p.input(name, "f32", (1, TOKENS, DEPTH)) for name in "kv")
    p.output("y", p.add("attention", q, k, v, scale=0.5, causal=True))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"q": sharded(0), "k": sharded(0, "kv"), "v": sharded(0, "kv")},
    outputs={"y": sharded(0)},
)
