"""Control: rotary pairs (i, i + d/2) or (2i, 2i + 1), where rows of the weights are permuted to match."""

from scalify_cases import Pair, Program, reordered, replicated

from scalify.ir.graph import Graph, NodeId

TOKENS, WIDTH, HEAD = 5, 6, 8


def halves(p: Program, x: NodeId, cos: NodeId, sin: NodeId) -> NodeId:
    first, second = p.cut(x, 1, 0, HEAD // 2), p.cut(x, 1, HEAD // 2, HEAD // 2)
    return p.joined(
        1,
        p.add("sub", p.add("mul", first, cos), p.add("mul", second, sin)),
        p.add("add", p.add("mul", second, cos), p.add("mul", first, sin)),
    )


def neighbours(p: Program, x: NodeId, cos: NodeId, sin: NodeId) -> NodeId:
    pairs = p.shaped(x, TOKENS, HEAD // 2, 2)
    even = p.shaped(p.cut(pairs, 2, 0, 1), TOKENS, HEAD // 2)
    odd = p.shaped(p.cut(pairs, 2, 1, 1), TOKENS, HEAD // 2)
    turned = (
        p.add("sub", p.add("mul", even, cos), p.add("mul", odd, sin)),
        p.add("add", p.add("mul", odd, cos), p.add("mul", even, sin)),
    )
    return p.shaped(p.joined(2, *(p.shaped(x, TOKENS, HEAD // 2, 1) for x in turned)), TOKENS, HEAD)


def scores(rotate: str) -> Graph:
    p = Program()
    x = p.input("x", "f32", (TOKENS, WIDTH))
    cos, sin = (p.input(name, "f32", (TOKENS, HEAD // 2)) for name in ("cos", "sin"))
    query = p.product("tm,dm->td", x, p.input("wq", "f32", (HEAD, WIDTH), role="parameter"))
    key = p.product("tm,dm->td", x, p.input("wk", "f32", (HEAD, WIDTH), role="parameter"))
    turn = halves if rotate == "halves" else neighbours
    p.output("scores", p.product("td,sd->ts", turn(p, query, cos, sin), turn(p, key, cos, sin)))
    return p.graph()


_permuted = reordered(0, (1, 2, HEAD // 2), (2, HEAD // 2, 1))

PAIR = Pair(
    verdict="proved",
    baseline=scores("halves"),
    candidate=scores("neighbours"),
    inputs={"x": replicated, "cos": replicated, "sin": replicated, "wq": _permuted, "wk": _permuted},
    outputs={"scores": replicated},
)
