"""B30 as it should be: the gradient is divided by the number of tokens, too, micro-batch by micro-batch."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph

TOKENS = 6


def candidate() -> Graph:
    p = Program()
    x, w = p.input("x", "f32", (TOKENS, 4)), p.input("w", "f32", (4,), role="parameter")
    halves = [p.cut(x, 0, start, TOKENS // 2) for start in (0, TOKENS // 2)]
    first, second = (p.total(p.product("ti,i->t", half, w), 0) for half in halves)
    p.output("loss", p.add("div", p.add("add", first, second), float(TOKENS)))
    share = p.constant(1 / TOKENS, "f32", (TOKENS // 2,))
    grads = (p.product("ti,t->i", half, share) for half in halves)
    p.output("dw", p.add("add", *grads))
    return p.graph()


PAIR = replace(
    load_pair("unknown/b30_raw_sum_differentiated"), verdict="proved", candidate=candidate(), agreeing=()
)
