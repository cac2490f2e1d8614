"""B28: a key that all heads share gets the gradient of each rank's own heads; the forward pass is right."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph

HEADS, TOKENS, DEPTH = 4, 5, 3


def baseline() -> Graph:
    p = Program()
    q, key = p.input("q", "f32", (HEADS, TOKENS, DEPTH)), p.input("key", "f32", (TOKENS, DEPTH))
    grad = p.input("grad", "f32", (HEADS, TOKENS, TOKENS))
    p.output("scores", p.product("htd,sd->hts", q, key))
    p.output("dkey", p.product("hts,htd->sd", grad, q))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    q, key = p.input("q", "f32", (HEADS // 2, TOKENS, DEPTH)), p.input("key", "f32", (TOKENS, DEPTH))
    grad = p.input("grad", "f32", (HEADS // 2, TOKENS, TOKENS))
    p.output("scores", p.product("htd,sd->hts", q, key))
    p.output("dkey", p.product("hts,htd->sd", grad, q))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"q": sharded(0), "key": replicated, "grad": sharded(0)},
    outputs={"scores": sharded(0), "dkey": replicated},
    agreeing=("scores",),
)
