"""Decoders of many equal layers, written node by node: on one device, and with tensor parallelism.

Few values are alive between layers and many within them, so the prover cuts there.
"""

from collections.abc import Collection

from scalify_cases import Program

from scalify.ir.graph import Graph, NodeId

TOKENS, WIDTH, HEADS, HEAD, INNER = 6, 16, 4, 4, 32


def decoder(*, layers: int, ranks: int = 1, unreduced: Collection[int] = ()) -> Graph:
    """x [T, W] -> [T, W]; the layers in ``unreduced`` forget the sum over ranks of their perceptron."""
    program = Program(tp=ranks) if ranks > 1 else Program()
    value = program.input("x", "f32", (TOKENS, WIDTH))
    for layer in range(layers):
        with program.scope(f"layers.{layer}"):
            value = program.add("add", value, _attention(program, value, layer))
            wide = _perceptron(program, value, layer)
            if ranks > 1 and layer not in unreduced:
                wide = program.over_ranks(wide)
            value = program.add("add", value, wide)
    program.output("y", value)
    return program.graph()


def _weight(program: Program, layer: int, name: str, *shape: int) -> NodeId:
    return program.input(f"layers.{layer}.{name}", "f32", shape, role="parameter")


def _attention(program: Program, x: NodeId, layer: int) -> NodeId:
    heads = HEADS // program.mesh.size
    normed = program.add("rms_norm", x, axes=(1,), eps=1e-5)
    q, k, v = (
        program.shaped(
            program.product("tw,wo->to", normed, _weight(program, layer, name, WIDTH, heads * HEAD)),
            *(TOKENS, heads, HEAD),
        )
        for name in ("q", "k", "v")
    )
    scores = program.add("mul", program.product("shd,thd->hst", q, k), HEAD**-0.5)
    mixed = program.product("hst,thd->shd", program.add("softmax", scores, axis=2), v)
    weight = _weight(program, layer, "o", heads * HEAD, WIDTH)
    own = program.product("to,ow->tw", program.shaped(mixed, TOKENS, heads * HEAD), weight)
    return program.over_ranks(own) if program.mesh.size > 1 else own


def _perceptron(program: Program, x: NodeId, layer: int) -> NodeId:
    inner = INNER // program.mesh.size
    normed = program.add("rms_norm", x, axes=(1,), eps=1e-5)
    gate, up = (
        program.product("tw,wi->ti", normed, _weight(program, layer, name, WIDTH, inner))
        for name in ("gate", "up")
    )
    active = program.add("mul", program.add("silu", gate), up)
    return program.product("ti,iw->tw", active, _weight(program, layer, "down", inner, WIDTH))
