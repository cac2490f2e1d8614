"""B53 as it should be: the same window, as j > i - window and by causality of the operator."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph

TOKENS, WINDOW = 6, 4


def candidate() -> Graph:
    p = Program()
    i, j = p.counter(0, TOKENS, TOKENS), p.counter(1, TOKENS, TOKENS)
    near = p.add("gt", p.add("add", j, WINDOW), i)
    q, k, v = (p.input(name, "f32", (2, TOKENS, 3)) for name in "qkv")
    p.output("y", p.add("attention", q, k, v, near, scale=0.5, causal=True))
    return p.graph()


PAIR = replace(load_pair("unknown/b53_window_dropped"), verdict="proved", candidate=candidate())
