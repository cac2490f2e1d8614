"""B34: a fusion binds the key before its permutation, and takes its heads for tokens."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph

HEADS = TOKENS = 3


def baseline() -> Graph:
    p = Program()
    q = p.input("q", "f32", (2, HEADS, TOKENS, 4))
    k = p.input("k", "f32", (2, TOKENS, HEADS, 4))
    v = p.input("v", "f32", (2, HEADS, TOKENS, 4))
    scores = p.product("bhtd,bhds->bhts", q, p.turned(k, 0, 2, 3, 1))
    p.output("y", p.product("bhts,bhsd->bhtd", p.add("softmax", scores, axis=3), v))
    return p.graph()


def candidate() -> Graph:
    p = Program()
    q = p.input("q", "f32", (2, HEADS, TOKENS, 4))
    k = p.input("k", "f32", (2, TOKENS, HEADS, 4))
    v = p.input("v", "f32", (2, HEADS, TOKENS, 4))
    p.output("y", p.add("attention", q, k, v, scale=1.0))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"q": replicated, "k": replicated, "v": replicated},
    outputs={"y": replicated},
)
