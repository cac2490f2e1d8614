"""B13: the backward pass over a share of the keys takes probabilities that sum to one within the share."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph

HEADS, TOKENS, KEYS, DEPTH = 2, 5, 6, 4


def baseline() -> Graph:
    p = Program()
    q, grad = (p.input(name, "f32", (HEADS, TOKENS, DEPTH)) for name in ("q", "grad"))
    k, v = (p.input(name, "f32", (HEADS, KEYS, DEPTH)) for name in "kv")
    weights = p.add("softmax", p.product("htd,hsd->hts", q, k), axis=2)
    of_weights = p.product("htd,hsd->hts", grad, v)
    spread = p.total(p.add("mul", weights, of_weights), 2, keepdims=True)
    of_scores = p.add("mul", weights, p.add("sub", of_weights, spread))
    p.output("dq", p.product("hts,hsd->htd", of_scores, k))
    return p.graph()


def candidate() -> Graph:
    p = Program(cp=2)
    q, grad = (p.input(name, "f32", (HEADS, TOKENS, DEPTH)) for name in ("q", "grad"))
    k, v = (p.input(name, "f32", (HEADS, KEYS // 2, DEPTH)) for name in "kv")
    weights = p.add("softmax", p.product("htd,hsd->hts", q, k), axis=2)  # suspect
    of_weights = p.product("htd,hsd->hts", grad, v)
    spread = p.over_ranks(p.total(p.add("mul", weights, of_weights), 2, keepdims=True))
    of_scores = p.add("mul", weights, p.add("sub", of_weights, spread))
    p.output("dq", p.over_ranks(p.product("hts,hsd->htd", of_scores, k)))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"q": replicated, "grad": replicated, "k": sharded(1), "v": sharded(1)},
    outputs={"dq": replicated},
)
