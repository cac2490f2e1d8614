"""Control: attention over shares of the keys with the maximum and the sum over all ranks."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(cp=2)
    q, k, v = p.input("q", "f32", (3, 5, 4)), p.input("k", "f32", (3, 4, 4)), p.input("v", "f32", (3, 4, 4))
    scores = p.add("mul", p.product("htd,hsd->hts", q, k), 0.5)
    most = p.over_ranks(p.most(scores, 2, keepdims=True), kind="max")
    powers = p.add("exp", p.add("sub", scores, most))
    total = p.over_ranks(p.total(powers, 2, keepdims=True))
    p.output("y", p.add("div", p.over_ranks(p.product("hts,hsd->htd", powers, v)), total))
    return p.graph()


PAIR = replace(
    load_pair("proved/c06_split_keys_merged"),
    candidate=candidate(),
)
