"""A ring that passes on blocks of keys: what rank r holds after a step is taken for that of rank r - 1."""

from scalify_cases import Pair, Program, sharded

from scalify.ir.graph import Graph

RANKS = 4


def baseline() -> Graph:
    p = Program()
    q, k = p.input("q", "f32", (8, 3)), p.input("k", "f32", (8, 3))
    before = p.joined(0, p.cut(k, 0, 6, 2), p.cut(k, 0, 0, 6))
    p.output("y", p.add("mul", q, before))
    return p.graph()


def ring(step: int) -> Graph:
    p = Program(cp=RANKS)
    q, k = p.input("q", "f32", (2, 3)), p.input("k", "f32", (2, 3))
    pairs = tuple((rank, (rank + step) % RANKS) for rank in range(RANKS))
    passed = p.add("permute", k, pairs=pairs)  # suspect
    p.output("y", p.add("mul", q, passed))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=ring(-1),
    inputs={"q": sharded(0), "k": sharded(0)},
    outputs={"y": sharded(0)},
)
MISPLACED = "what is computed of the keys that were passed on is blamed, and not who passed them on"
