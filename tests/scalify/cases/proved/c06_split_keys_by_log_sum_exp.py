"""Control: each share's own attention, weighted by exp(its log-sum-exp less that of all)."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(cp=2)
    q, k, v = p.input("q", "f32", (3, 5, 4)), p.input("k", "f32", (3, 4, 4)), p.input("v", "f32", (3, 4, 4))
    scores = p.add("mul", p.product("htd,hsd->hts", q, k), 0.5)
    own = p.add("logsumexp", scores, axes=(2,), keepdims=True)
    of_all = p.gathered(own, 2)
    weight = p.add("exp", p.add("sub", own, p.add("logsumexp", of_all, axes=(2,), keepdims=True)))
    part = p.product("hts,hsd->htd", p.add("softmax", scores, axis=2), v)
    p.output("y", p.over_ranks(p.add("mul", part, weight)))
    return p.graph()


PAIR = replace(
    load_pair("proved/c06_split_keys_merged"),
    candidate=candidate(),
)
