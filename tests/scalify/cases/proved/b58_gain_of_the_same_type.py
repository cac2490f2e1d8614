"""B58 as it should be: the fused norm is only used where weight and activations have the same type."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    x, gain = p.input("x", "bf16", (4, 8)), p.input("gain", "bf16", (8,), role="parameter")
    wide = p.add("cast", x, dtype="f32")
    spread = p.add("add", p.mean(p.add("square", wide), 1, keepdims=True), 1e-5)
    normal = p.add("cast", p.add("mul", wide, p.add("rsqrt", spread)), dtype="bf16")
    p.output("y", p.add("mul", normal, p.add("add", gain, 1.0)))
    return p.graph()


def candidate() -> Graph:
    p = Program()
    x, gain = p.input("x", "bf16", (4, 8)), p.input("gain", "bf16", (8,), role="parameter")
    p.output("y", p.add("rms_norm", x, p.add("add", gain, 1.0), axes=(1,), eps=1e-5))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": replicated, "gain": replicated},
    outputs={"y": replicated},
)
