"""B34 as it should be: the fused attention gets the key with its heads in front of its tokens."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph

HEADS = TOKENS = 3


def candidate() -> Graph:
    p = Program()
    q = p.input("q", "f32", (2, HEADS, TOKENS, 4))
    k = p.input("k", "f32", (2, TOKENS, HEADS, 4))
    v = p.input("v", "f32", (2, HEADS, TOKENS, 4))
    p.output("y", p.add("attention", q, p.turned(k, 0, 2, 1, 3), v, scale=1.0))
    return p.graph()


PAIR = replace(load_pair("unknown/b34_key_permuted_too_far"), verdict="proved", candidate=candidate())
