"""B63 as it should be: the gradient that the exchange brings goes through the norm."""

from dataclasses import replace

from scalify_cases import Program, load_pair, replicated, sharded

from scalify.ir.graph import Graph

TOKENS, HEADS, DEPTH = 6, 4, 5


def candidate() -> Graph:
    p = Program(sp=2)
    grad = p.exchanged(p.input("grad", "f32", (TOKENS, HEADS // 2, DEPTH)), 0, 1)
    x = p.input("x", "f32", (TOKENS // 2, HEADS, DEPTH))
    inverse = p.add("rsqrt", p.add("add", p.mean(p.add("square", x), 2, keepdims=True), 1e-5))
    scaled = p.add("mul", grad, p.input("gain", "f32", (DEPTH,), role="parameter"))
    along = p.mean(p.add("mul", scaled, x), 2, keepdims=True)
    cube = p.add("mul", p.add("square", inverse), inverse)
    p.output("dx", p.add("sub", p.add("mul", scaled, inverse), p.add("mul", p.add("mul", x, cube), along)))
    return p.graph()


PAIR = replace(
    load_pair("unknown/b63_norm_gradient_overwritten"),
    verdict="proved",
    candidate=candidate(),
    inputs={"grad": sharded(1), "x": sharded(0), "gain": replicated},
)
