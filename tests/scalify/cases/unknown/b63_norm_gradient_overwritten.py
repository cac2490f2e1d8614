"""B63: the gradient through the key norm is computed before the exchange, and overwritten by what arrives."""

from scalify_cases import Pair, Program, sharded

from scalify.ir.graph import Graph, NodeId

TOKENS, HEADS, DEPTH = 6, 4, 5


def through_norm(p: Program, grad: NodeId, x: NodeId, gain: NodeId) -> NodeId:
    """The gradient of an RMS norm's operand."""
    inverse = p.add("rsqrt", p.add("add", p.mean(p.add("square", x), 2, keepdims=True), 1e-5))
    scaled = p.add("mul", grad, gain)
    along = p.mean(p.add("mul", scaled, x), 2, keepdims=True)
    cube = p.add("mul", p.add("square", inverse), inverse)
    return p.add("sub", p.add("mul", scaled, inverse), p.add("mul", p.add("mul", x, cube), along))


def baseline() -> Graph:
    p = Program()
    grad, x = (p.input(name, "f32", (TOKENS, HEADS, DEPTH)) for name in ("grad", "x"))
    p.output("dx", through_norm(p, grad, x, p.input("gain", "f32", (DEPTH,), role="parameter")))
    return p.graph()


def candidate() -> Graph:
    p = Program(sp=2)
    grad = p.input("grad", "f32", (TOKENS, HEADS // 2, DEPTH))
    p.input("x", "f32", (TOKENS // 2, HEADS, DEPTH))
    p.output("dx", p.exchanged(grad, 0, 1))  # suspect
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"grad": sharded(1), "x": sharded(0)},
    outputs={"dx": sharded(0)},
)
