"""A sliding window of 4 tokens that lets 5 through."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph

TOKENS, WINDOW = 6, 4


def candidate() -> Graph:
    p = Program()
    i, j = p.counter(0, TOKENS, TOKENS), p.counter(1, TOKENS, TOKENS)
    near = p.add("le", p.add("sub", i, j), WINDOW)  # suspect
    mask = p.add("and", p.add("ge", i, j), near)
    q, k, v = (p.input(name, "f32", (2, TOKENS, 3)) for name in "qkv")
    p.output("y", p.add("attention", q, k, v, mask, scale=0.5))
    return p.graph()


PAIR = replace(load_pair("unknown/b53_window_dropped"), candidate=candidate())
