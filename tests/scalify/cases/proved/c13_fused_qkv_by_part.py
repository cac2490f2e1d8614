"""Control: one weight holds query, key and value rows, and each part is sharded by heads."""

from scalify_cases import Pair, Program, fused, replicated, sharded

from scalify.ir.graph import Graph

TOKENS, WIDTH, DEPTH = 5, 6, 4


def attend(tp: int) -> Graph:
    p = Program(tp=tp) if tp > 1 else Program()
    heads, shared = 4 // tp, 2 // tp
    x = p.input("x", "f32", (TOKENS, WIDTH))
    w = p.input("wqkv", "f32", ((heads + 2 * shared) * DEPTH, WIDTH), role="parameter")
    rows = p.product("tm,om->to", x, w)
    q = p.cut(rows, 1, 0, heads * DEPTH)
    k = p.cut(rows, 1, heads * DEPTH, shared * DEPTH)
    v = p.cut(rows, 1, (heads + shared) * DEPTH, shared * DEPTH)
    by_head = (
        p.turned(p.shaped(part, TOKENS, count, DEPTH), 1, 0, 2)
        for part, count in ((q, heads), (k, shared), (v, shared))
    )
    p.output("y", p.add("attention", *by_head, scale=0.5, causal=True))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=attend(1),
    candidate=attend(2),
    inputs={"x": replicated, "wqkv": fused(0, 4 * DEPTH, 2 * DEPTH, 2 * DEPTH)},
    outputs={"y": sharded(0)},
)
