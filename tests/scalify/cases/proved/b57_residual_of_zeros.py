"""B57 as it should be: the fused all-reduce and norm gets zeros for a residual."""

from dataclasses import replace

from scalify_cases import Program, load_pair

from scalify.ir.graph import Graph


def candidate() -> Graph:
    p = Program(tp=2)
    x, w = p.input("x", "f32", (4, 3)), p.input("w", "f32", (3, 8), role="parameter")
    gain = p.input("gain", "f32", (8,), role="parameter")
    total = p.over_ranks(p.product("ti,io->to", x, w))
    moved = p.add("add", total, p.constant(0.0, "f32", (4, 8)))
    p.output("y", p.add("rms_norm", moved, gain, axes=(1,), eps=1e-5))
    return p.graph()


PAIR = replace(load_pair("unknown/b57_residual_uninitialised"), verdict="proved", candidate=candidate())
