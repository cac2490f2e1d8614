"""B51 as it should be: scores are capped on every rank."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(tp=2)
    q, k, v = (p.input(name, "f32", (2, 5, 6)) for name in "qkv")
    scores = p.add("mul", p.product("htd,hsd->hts", q, k), 1 / 3)
    capped = p.add("mul", p.add("tanh", scores), 3.0)
    p.output("y", p.product("hts,hsd->htd", p.add("softmax", capped, axis=2), v))
    return p.graph()


PAIR = replace(load_pair("unknown/b51_soft_cap_dropped"), verdict="proved", candidate=candidate())
