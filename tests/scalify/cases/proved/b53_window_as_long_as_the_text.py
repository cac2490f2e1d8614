"""B53 where no token lies beyond the window: it may be dropped."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph

TOKENS, WINDOW = 4, 4


def attend(windowed: bool) -> Graph:
    p = Program()
    i, j = p.counter(0, TOKENS, TOKENS), p.counter(1, TOKENS, TOKENS)
    mask = p.add("ge", i, j)
    if windowed:
        mask = p.add("and", mask, p.add("lt", p.add("sub", i, j), WINDOW))
    q, k, v = (p.input(name, "f32", (2, TOKENS, 3)) for name in "qkv")
    p.output("y", p.add("attention", q, k, v, mask, scale=0.5))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=attend(True),
    candidate=attend(False),
    inputs={"q": replicated, "k": replicated, "v": replicated},
    outputs={"y": replicated},
)
