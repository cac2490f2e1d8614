"""B51: the kernel is called with a soft cap of 0, and attention scores are not capped."""

from scalify_cases import Pair, Program, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    q, k, v = (p.input(name, "f32", (4, 5, 6)) for name in "qkv")
    scores = p.product("htd,hsd->hts", q, k)
    capped = p.add("mul", p.add("tanh", p.add("div", scores, 3.0)), 3.0)
    p.output("y", p.product("hts,hsd->htd", p.add("softmax", capped, axis=2), v))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    q, k, v = (p.input(name, "f32", (2, 5, 6)) for name in "qkv")
    p.output("y", p.add("attention", q, k, v, scale=1.0))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"q": sharded(0), "k": sharded(0), "v": sharded(0)},
    outputs={"y": sharded(0)},
)
