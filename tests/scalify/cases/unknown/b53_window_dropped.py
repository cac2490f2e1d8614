"""B53: a layer with a sliding window of 4 attends to all 6 tokens before."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph, NodeId

TOKENS, WINDOW = 6, 4


def attend(p: Program, mask: NodeId) -> NodeId:
    q, k, v = (p.input(name, "f32", (2, TOKENS, 3)) for name in "qkv")
    return p.add("attention", q, k, v, mask, scale=0.5)  # suspect


def baseline() -> Graph:
    p = Program()
    i, j = p.counter(0, TOKENS, TOKENS), p.counter(1, TOKENS, TOKENS)
    near = p.add("lt", p.add("sub", i, j), WINDOW)
    p.output("y", attend(p, p.add("and", p.add("ge", i, j), near)))
    return p.graph()


def candidate() -> Graph:
    p = Program()
    before = p.add("ge", p.counter(0, TOKENS, TOKENS), p.counter(1, TOKENS, TOKENS))  # suspect
    p.output("y", attend(p, before))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"q": replicated, "k": replicated, "v": replicated},
    outputs={"y": replicated},
)
