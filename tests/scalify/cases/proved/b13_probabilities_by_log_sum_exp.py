"""B13 as it should be, as kernels write it: probabilities are exp(score - log-sum-exp of all keys)."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph

HEADS, TOKENS, KEYS, DEPTH = 2, 5, 6, 4


def candidate() -> Graph:
    p = Program(cp=2)
    q, grad = (p.input(name, "f32", (HEADS, TOKENS, DEPTH)) for name in ("q", "grad"))
    k, v = (p.input(name, "f32", (HEADS, KEYS // 2, DEPTH)) for name in "kv")
    scores = p.product("htd,hsd->hts", q, k)
    most = p.over_ranks(p.most(scores, 2, keepdims=True), kind="max")
    total = p.over_ranks(p.total(p.add("exp", p.add("sub", scores, most)), 2, keepdims=True))
    weights = p.add("exp", p.add("sub", scores, p.add("add", p.add("log", total), most)))
    of_weights = p.product("htd,hsd->hts", grad, v)
    spread = p.over_ranks(p.total(p.add("mul", weights, of_weights), 2, keepdims=True))
    of_scores = p.add("mul", weights, p.add("sub", of_weights, spread))
    p.output("dq", p.over_ranks(p.product("hts,hsd->htd", of_scores, k)))
    return p.graph()


PAIR = replace(load_pair("unknown/b13_probabilities_of_the_chunk"), verdict="proved", candidate=candidate())
