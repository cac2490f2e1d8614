"""B49: a kernel that is not told rotary_dim rotates the whole head instead of its first half."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph

TOKENS, HEAD = 5, 8


def baseline() -> Graph:
    p = Program()
    q = p.input("q", "f32", (TOKENS, HEAD))
    cos, sin = (p.cut(p.input(name, "f32", (TOKENS, HEAD // 2)), 1, 0, 2) for name in ("cos", "sin"))
    first, second = p.cut(q, 1, 0, 2), p.cut(q, 1, 2, 2)
    turned = (
        p.add("sub", p.add("mul", first, cos), p.add("mul", second, sin)),
        p.add("add", p.add("mul", second, cos), p.add("mul", first, sin)),
    )
    p.output("q", p.joined(1, *turned, p.cut(q, 1, 4, 4)))
    return p.graph()


def candidate() -> Graph:
    p = Program()
    q = p.input("q", "f32", (TOKENS, HEAD))
    cos, sin = (p.input(name, "f32", (TOKENS, HEAD // 2)) for name in ("cos", "sin"))
    first, second = p.cut(q, 1, 0, 4), p.cut(q, 1, 4, 4)  # suspect
    turned = (
        p.add("sub", p.add("mul", first, cos), p.add("mul", second, sin)),
        p.add("add", p.add("mul", second, cos), p.add("mul", first, sin)),
    )
    p.output("q", p.joined(1, *turned))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"q": replicated, "cos": replicated, "sin": replicated},
    outputs={"q": replicated},
)
