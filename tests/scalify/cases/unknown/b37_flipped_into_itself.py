"""B37: half of an in-place sum with the flipped tensor reads elements that are sums already."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    y = p.add("silu", p.input("x", "f32", (6,)))
    p.output("x", p.add("add", y, p.add("reverse", y, axes=(0,))))
    return p.graph()


def candidate() -> Graph:
    p = Program()
    y = p.add("silu", p.input("x", "f32", (6,)))
    low, high = p.cut(y, 0, 0, 3), p.cut(y, 0, 3, 3)
    low = p.add("add", low, p.add("reverse", high, axes=(0,)))
    overwritten = p.add("reverse", low, axes=(0,))  # suspect
    p.output("x", p.joined(0, low, p.add("add", high, overwritten)))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": replicated},
    outputs={"x": replicated},
)
