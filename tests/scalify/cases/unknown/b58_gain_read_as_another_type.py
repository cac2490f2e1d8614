"""B58: a fused norm of bf16 activations reads the bytes of an f32 weight as bf16."""

from scalify_cases import Pair, Program, replicated

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    x, gain = p.input("x", "bf16", (4, 8)), p.input("gain", "f32", (8,), role="parameter")
    shifted = p.add("add", gain, 1.0)
    p.output("y", p.add("rms_norm", p.add("cast", x, dtype="f32"), shifted, axes=(1,), eps=1e-5))
    return p.graph()


def candidate() -> Graph:
    p = Program()
    x, gain = p.input("x", "bf16", (4, 8)), p.input("gain", "f32", (8,), role="parameter")
    shifted = p.add("add", gain, 1.0)
    read = p.add("opaque", shifted, target="bitcast", config="bf16", shape=(16,), dtype="bf16")  # suspect
    first = p.cut(read, 0, 0, 8)
    p.output("y", p.add("rms_norm", x, first, axes=(1,), eps=1e-5))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": replicated, "gain": replicated},
    outputs={"y": replicated},
)
