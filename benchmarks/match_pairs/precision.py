"""The same numbers kept in other formats: integers with scales, sixteen bits, autocast."""

from math import sqrt

import torch
import torch.nn.functional as F
from match_pairs.convention import (
    Pair,
    Pairs,
    Program,
    gain,
    matrices,
    matrix,
    merge_heads,
    normal,
    offset,
    rms_norm_by_hand,
    seeded,
    split_heads,
    tag,
)
from torch import Generator, Tensor

WIDTH, INNER, HEADS = 64, 128, 4
HEAD_WIDTH = WIDTH // HEADS

PAIRS = Pairs()


def eight_bits(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Integers of -127 to 127, and a scale for each row."""
    scale = weight.abs().amax(1, keepdim=True) / 127
    return torch.round(weight / scale).to(torch.int8), scale


@PAIRS.add
def int8_dequantised_each_time_vs_before() -> Pair:
    g = seeded(801)
    whole = {"up": matrix(g, INNER, WIDTH), "down": matrix(g, WIDTH, INNER), "head": matrix(g, 100, WIDTH)}
    quantised: dict[str, Tensor] = {}
    for name, weight in whole.items():
        quantised[name], quantised[f"{name}_scale"] = eight_bits(weight)
    before = {name: quantised[name].float() * quantised[f"{name}_scale"] for name in whole}
    bias = {"bias": offset(g, INNER)}

    def each_time(m: Program, x: Tensor) -> Tensor:
        up = m.up.to(x.dtype) * m.up_scale
        hidden = tag("hidden", F.gelu(tag("up", F.linear(tag("x", x), up, m.bias))))
        down = tag("down", F.linear(hidden, m.down.to(x.dtype)) * m.down_scale.squeeze(1))
        x = tag("y", x + down)
        return tag("logits", F.linear(x, m.head.to(x.dtype) * m.head_scale))

    def given(m: Program, x: Tensor) -> Tensor:
        hidden = tag("hidden", F.gelu(tag("up", F.linear(tag("x", x), m.up, m.bias))))
        x = tag("y", x + tag("down", F.linear(hidden, m.down)))
        return tag("logits", F.linear(x, m.head))

    return {
        "A": Program(each_time, quantised | bias),
        "B": Program(given, before | bias),
        "args": [normal(g, 2, 32, WIDTH)],
    }


@PAIRS.add
def int4_unpacked_vs_plain() -> Pair:
    """Two weights to a byte, a scale and a zero for every group of 32 columns; or what they stand for."""
    g = seeded(802)
    group = 32

    def packed(rows: int, columns: int) -> dict[str, Tensor]:
        levels = torch.randint(0, 16, (rows, columns), generator=g, dtype=torch.uint8)
        scales = (torch.rand(rows, columns // group, generator=g) + 0.5) / (4.6 * sqrt(columns))
        zeros = torch.randint(6, 10, (rows, columns // group), generator=g).float()
        return {"bytes": levels[:, ::2] | levels[:, 1::2] << 4, "scales": scales, "zeros": zeros}

    def unpack(packed: Tensor, scales: Tensor, zeros: Tensor) -> Tensor:
        levels = torch.stack([packed & 15, packed >> 4], dim=-1).flatten(1).float()
        grouped = levels.view(levels.shape[0], -1, group)
        return ((grouped - zeros[..., None]) * scales[..., None]).flatten(1)

    layers = [packed(INNER, WIDTH), packed(WIDTH, INNER)]
    plain = [{"w": unpack(w["bytes"], w["scales"], w["zeros"])} for w in layers]
    norm = {"norm": gain(g, WIDTH)}

    def unpacked(m: Program, x: Tensor) -> Tensor:
        up, down = m.layers
        normed = tag("normed", F.rms_norm(tag("x", x), (WIDTH,), m.norm, 1e-6))
        wide = tag("up", F.linear(normed, tag("w1", unpack(up.bytes, up.scales, up.zeros))))
        hidden = tag("hidden", F.silu(wide))
        return tag("y", x + F.linear(hidden, tag("w2", unpack(down.bytes, down.scales, down.zeros))))

    def given(m: Program, x: Tensor) -> Tensor:
        up, down = m.layers
        normed = tag("normed", rms_norm_by_hand(tag("x", x), m.norm))
        hidden = tag("hidden", F.silu(tag("up", F.linear(normed, tag("w1", up.w)))))
        return tag("y", x + F.linear(hidden, tag("w2", down.w)))

    return {
        "A": Program(unpacked, norm, layers),
        "B": Program(given, norm, plain),
        "args": [normal(g, 2, 32, WIDTH)],
    }


def block_weights(g: Generator) -> list[dict[str, Tensor]]:
    """Two layers whose activations differ in scale and mean, so that coarse numbers still tell them apart."""
    layers: list[dict[str, Tensor]] = []
    for scale in (1.0, 2.0):
        ws = matrices(g, "wq wk wv wo up", WIDTH, WIDTH)
        ws |= {"wq": ws["wq"] * 2.2, "wk": ws["wk"] * 0.35}
        ws |= {"norm": gain(g, WIDTH) * scale, "bias": offset(g, WIDTH) + 0.4}
        layers.append(ws | {"bv": offset(g, WIDTH) + 0.9 * scale})
    return layers


def attention_blocks(m: Program, x: Tensor) -> Tensor:
    """Two blocks, each of attention and a gate, in the precision of the weights and of autocast."""
    for i, w in enumerate(m.layers):
        normed = tag(f"normed{i}", F.layer_norm(x, (WIDTH,), w.norm, w.bias))
        q = tag(f"q{i}", split_heads(F.linear(normed, w.wq), HEADS))
        k = tag(f"k{i}", split_heads(F.linear(normed, w.wk), HEADS))
        v = tag(f"v{i}", split_heads(F.linear(normed, w.wv, w.bv), HEADS))
        scores = tag(f"scores{i}", q @ k.transpose(-1, -2) / sqrt(HEAD_WIDTH))
        context = tag(f"context{i}", torch.softmax(scores, -1) @ v)
        x = tag(f"x{i}", x + F.linear(merge_heads(context), w.wo))
        x = tag(f"gated{i}", x * torch.sigmoid(F.linear(x, w.up)))
    return x


@PAIRS.add
def attention_fp16_vs_fp32() -> Pair:
    g = seeded(803)
    layers = block_weights(g)
    half = [{name: weight.half() for name, weight in layer.items()} for layer in layers]

    def single(m: Program, x: Tensor) -> Tensor:
        return attention_blocks(m, tag("x", x))

    def halved(m: Program, x: Tensor) -> Tensor:
        return attention_blocks(m, tag("x", x).half()).float()

    return {
        "A": Program(single, {}, layers),
        "B": Program(halved, {}, half),
        "args": [normal(g, 4, 32, WIDTH)],
        "tol": 2e-2,
    }


@PAIRS.add
def autocast_bf16_vs_fp32() -> Pair:
    """Matmuls in bfloat16, norms and residuals as autocast leaves them, or single precision throughout."""
    g = seeded(804)
    layers = block_weights(g)

    def single(m: Program, x: Tensor) -> Tensor:
        return attention_blocks(m, tag("x", x))

    def mixed(m: Program, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return attention_blocks(m, tag("x", x))

    return {
        "A": Program(single, {}, layers),
        "B": Program(mixed, {}, layers),
        "args": [normal(g, 4, 32, WIDTH)],
        "tol": 4e-2,
    }


@PAIRS.add
def lora_merged_vs_beside() -> Pair:
    g = seeded(805)
    rank, scale = 8, 2.0
    ws = matrices(g, "wq wv", WIDTH, WIDTH)
    adapters = matrices(g, "q_down v_down", rank, WIDTH) | matrices(g, "q_up v_up", WIDTH, rank)
    merged = {f"w{n}": ws[f"w{n}"] + scale * adapters[f"{n}_up"] @ adapters[f"{n}_down"] for n in "qv"}
    rest = matrices(g, "wk wo", WIDTH, WIDTH) | {"norm": gain(g, WIDTH)}

    def finish(m: Program, x: Tensor, normed: Tensor, q: Tensor, v: Tensor) -> Tensor:
        k = tag("k", F.linear(normed, m.wk))
        q, k, v = (split_heads(each, HEADS) for each in (tag("q", q), k, tag("v", v)))
        context = tag("context", F.scaled_dot_product_attention(q, k, v, is_causal=True))
        return tag("y", x + F.linear(merge_heads(context), m.wo))

    def beside(m: Program, x: Tensor) -> Tensor:
        normed = tag("normed", F.rms_norm(tag("x", x), (WIDTH,), m.norm, 1e-6))
        q = F.linear(normed, m.wq) + F.linear(F.linear(normed, m.q_down), m.q_up) * scale
        v = F.linear(normed, m.wv) + F.linear(F.linear(normed, m.v_down), m.v_up) * scale
        return finish(m, x, normed, q, v)

    def together(m: Program, x: Tensor) -> Tensor:
        normed = tag("normed", rms_norm_by_hand(tag("x", x), m.norm))
        return finish(m, x, normed, F.linear(normed, m.wq), F.linear(normed, m.wv))

    return {
        "A": Program(beside, ws | adapters | rest),
        "B": Program(together, merged | rest),
        "args": [normal(g, 2, 32, WIDTH)],
    }
