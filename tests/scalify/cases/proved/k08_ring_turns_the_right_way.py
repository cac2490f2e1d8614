"""A ring that passes on blocks of keys: after a step, rank r holds those of rank r - 1."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph

RANKS = 4


def candidate() -> Graph:
    p = Program(cp=RANKS)
    q, k = p.input("q", "f32", (2, 3)), p.input("k", "f32", (2, 3))
    passed = p.add("permute", k, pairs=tuple((rank, (rank + 1) % RANKS) for rank in range(RANKS)))
    p.output("y", p.add("mul", q, passed))
    return p.graph()


PAIR = replace(load_pair("unknown/k08_ring_turns_the_other_way"), verdict="proved", candidate=candidate())
