"""B57: a fused all-reduce and norm without a residual gets a buffer that nobody wrote."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    x, w = p.input("x", "f32", (4, 6)), p.input("w", "f32", (6, 8), role="parameter")
    gain = p.input("gain", "f32", (8,), role="parameter")
    p.output("y", p.add("rms_norm", p.product("ti,io->to", x, w), gain, axes=(1,), eps=1e-5))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    x, w = p.input("x", "f32", (4, 3)), p.input("w", "f32", (3, 8), role="parameter")
    gain = p.input("gain", "f32", (8,), role="parameter")
    total = p.over_ranks(p.product("ti,io->to", x, w))
    residual = p.add("opaque", target="empty_like", shape=(4, 8), dtype="f32")
    moved = p.add("add", total, residual)  # suspect
    p.output("y", p.add("rms_norm", moved, gain, axes=(1,), eps=1e-5))
    return p.graph()


PAIR = Pair(
    verdict="unknown",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": sharded(1), "w": sharded(0), "gain": replicated},
    outputs={"y": replicated},
)
