"""Control: attention over shares of the keys, merged by their maxima and sums of exponentials."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    q, k, v = p.input("q", "f32", (3, 5, 4)), p.input("k", "f32", (3, 8, 4)), p.input("v", "f32", (3, 8, 4))
    p.output("y", p.add("attention", q, k, v, scale=0.5))
    return p.graph()


def candidate() -> Graph:
    p = Program(cp=2)
    q, k, v = p.input("q", "f32", (3, 5, 4)), p.input("k", "f32", (3, 4, 4)), p.input("v", "f32", (3, 4, 4))
    scores = p.add("mul", p.product("htd,hsd->hts", q, k), 0.5)
    most = p.most(scores, 2, keepdims=True)
    powers = p.add("exp", p.add("sub", scores, most))
    total, part = p.total(powers, 2, keepdims=True), p.product("hts,hsd->htd", powers, v)
    weight = p.add("exp", p.add("sub", most, p.over_ranks(most, kind="max")))
    merged = p.over_ranks(p.add("mul", part, weight))
    p.output("y", p.add("div", merged, p.over_ranks(p.add("mul", total, weight))))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"q": replicated, "k": sharded(1), "v": sharded(1)},
    outputs={"y": replicated},
)
