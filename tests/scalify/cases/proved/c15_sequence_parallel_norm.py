"""Control: norms on shares of the sequence, between a reduce-scatter and an all-gather."""

from scalify_cases import Pair, Program, replicated, sharded

from scalify.ir.graph import Graph


def baseline() -> Graph:
    p = Program()
    x, w = p.input("x", "f32", (8, 6)), p.input("w", "f32", (6, 6), role="parameter")
    gain, v = (
        p.input("gain", "f32", (6,), role="parameter"),
        p.input("v", "f32", (10, 6), role="parameter"),
    )
    hidden = p.add("rms_norm", p.product("ti,io->to", x, w), gain, axes=(1,), eps=1e-5)
    p.output("y", p.product("tm,fm->tf", hidden, v))
    return p.graph()


def candidate() -> Graph:
    p = Program(tp=2)
    x, w = p.input("x", "f32", (8, 3)), p.input("w", "f32", (3, 6), role="parameter")
    gain, v = p.input("gain", "f32", (6,), role="parameter"), p.input("v", "f32", (5, 6), role="parameter")
    own = p.scattered(p.product("ti,io->to", x, w), 0)
    hidden = p.gathered(p.add("rms_norm", own, gain, axes=(1,), eps=1e-5), 0)
    p.output("y", p.product("tm,fm->tf", hidden, v))
    return p.graph()


PAIR = Pair(
    verdict="proved",
    baseline=baseline(),
    candidate=candidate(),
    inputs={"x": sharded(1), "w": sharded(0), "gain": replicated, "v": sharded(0)},
    outputs={"y": sharded(1)},
)
