"""B28 as it should be: the gradient of a shared key is summed over ranks."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph

HEADS, TOKENS, DEPTH = 4, 5, 3


def candidate() -> Graph:
    p = Program(tp=2)
    q, key = p.input("q", "f32", (HEADS // 2, TOKENS, DEPTH)), p.input("key", "f32", (TOKENS, DEPTH))
    grad = p.input("grad", "f32", (HEADS // 2, TOKENS, TOKENS))
    p.output("scores", p.product("htd,sd->hts", q, key))
    p.output("dkey", p.over_ranks(p.product("hts,htd->sd", grad, q)))
    return p.graph()


PAIR = replace(
    load_pair("unknown/b28_shared_key_gradient_of_own_heads"),
    verdict="proved",
    candidate=candidate(),
    agreeing=(),
)
