"""B30: the reported loss is divided by the number of tokens, but the gradient is that of the raw sum."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph

TOKENS = 6


def baseline() -> Graph:
    p = Program()
    x, w = p.input("x", "f32", (TOKENS, 4)), p.input("w", "f32", (4,), role="parameter")
    one = p.add("div", p.constant(1.0, "f32", (TOKENS,)), float(TOKENS))
    p.output("loss", p.add("div", p.total(p.product("ti,i->t", x, w), 0), float(TOKENS)))
    p.output("dw", p.product("ti,t->i", x, one))
    return p.graph()


def candidate() -> Graph:
    p = Program()
    x, w = p.input("x", "f32", (TOKENS, 4)), p.input("w", "f32", (4,), role="parameter")
    first, second = (
        p.total(p.product("ti,i->t", p.cut(x, 0, start, TOKENS // 2), w), 0) for start in (0, TOKENS // 2)
    )
    p.output("loss", p.add("div", p.add("add", first, second), float(TOKENS)))
    p.output("dw", p.product("ti,t->i", x, p.constant(1.0, "f32", (TOKENS,))))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": replicated, "w": replicated},
    outputs={"loss": replicated, "dw": replicated},
    agreeing=("loss",),
)
