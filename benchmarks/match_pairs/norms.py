"""Norms and small operators: one operator or its decomposition, folded into a neighbour, or done in place."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from match_pairs.convention import (
    Pair,
    Pairs,
    Program,
    gain,
    layer_norm_by_hand,
    matrices,
    matrix,
    norm_weights,
    normal,
    offset,
    seeded,
    tag,
)
from torch import Generator, Tensor

BATCH, LENGTH, WIDTH, INNER = 2, 24, 96, 160

PAIRS = Pairs()


@PAIRS.add
def layer_norm_fused_vs_by_hand() -> Pair:
    """Two pre-norm MLP blocks; mean and variance by mean() in one norm and by var_mean in the other."""
    g = seeded(501)
    layers = [
        norm_weights(g, "norm", width=WIDTH)
        | {"up": matrix(g, INNER, WIDTH), "up_bias": offset(g, INNER), "down": matrix(g, WIDTH, INNER)}
        for _ in range(2)
    ]

    def fused(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(x, (WIDTH,), weight, bias, 1e-5)

    def by_var_mean(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        return (x - mean) * torch.rsqrt(variance + 1e-5) * weight + bias

    def blocks(*norms: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[[Program, Tensor], Tensor]:
        def run(m: Program, x: Tensor) -> Tensor:
            tag("x", x)
            for i, (w, norm) in enumerate(zip(m.layers, norms, strict=True)):
                normed = tag(f"normed{i}", norm(x, w.norm_gain, w.norm_offset))
                hidden = tag(f"hidden{i}", F.gelu(tag(f"up{i}", F.linear(normed, w.up, w.up_bias))))
                x = tag(f"x{i}", x + tag(f"down{i}", F.linear(hidden, w.down)))
            return x

        return run

    return {
        "A": Program(blocks(fused, fused), {}, layers),
        "B": Program(blocks(layer_norm_by_hand, by_var_mean), {}, layers),
        "args": [normal(g, BATCH, LENGTH, WIDTH)],
    }


def image_weights(g: Generator, channels: int) -> dict[str, Tensor]:
    """Two norms and two 3x3 convolutions."""
    ws = norm_weights(g, "first", "second", width=channels)
    for name in ("first", "second"):
        ws[name] = matrix(g, channels, channels * 9).view(channels, channels, 3, 3)
    return ws


@PAIRS.add
def group_norm_fused_vs_by_hand() -> Pair:
    g = seeded(502)
    channels, groups = 32, 4
    ws = image_weights(g, channels)

    def fused(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.group_norm(x, groups, weight, bias, 1e-5)

    def by_hand(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        grouped = x.reshape(x.shape[0], groups, -1)
        centred = grouped - grouped.mean(-1, keepdim=True)
        scaled = centred * torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + 1e-5)
        return scaled.view(x.shape) * weight[:, None, None] + bias[:, None, None]

    def block(norm: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[[Program, Tensor], Tensor]:
        def run(m: Program, x: Tensor) -> Tensor:
            normed = tag("normed1", norm(tag("x", x), m.first_gain, m.first_offset))
            h = tag("conv1", F.conv2d(tag("act1", F.silu(normed)), m.first, padding=1))
            normed = tag("normed2", norm(h, m.second_gain, m.second_offset))
            h = tag("conv2", F.conv2d(tag("act2", F.silu(normed)), m.second, padding=1))
            return tag("y", x + h)

        return run

    return {
        "A": Program(block(fused), ws),
        "B": Program(block(by_hand), ws),
        "args": [normal(g, 2, channels, 12, 12)],
    }


@PAIRS.add
def batch_norm_folded_into_convolution() -> Pair:
    g = seeded(503)
    channels = 24
    layers = [
        {
            "w": matrix(g, channels, channels * 9).view(channels, channels, 3, 3),
            "gain": gain(g, channels),
            "offset": offset(g, channels),
            "mean": offset(g, channels),
            "variance": gain(g, channels),
        }
        for _ in range(3)
    ]

    def folded_weights(layer: dict[str, Tensor]) -> dict[str, Tensor]:
        scale = layer["gain"] / torch.sqrt(layer["variance"] + 1e-5)
        return {"w": layer["w"] * scale.view(-1, 1, 1, 1), "b": layer["offset"] - layer["mean"] * scale}

    def normed(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        for i, w in enumerate(m.layers):
            h = tag(f"raw{i}", F.conv2d(x, w.w, padding=1))
            h = tag(f"conv{i}", F.batch_norm(h, w.mean, w.variance, w.gain, w.offset))
            x = tag(f"x{i}", x + tag(f"act{i}", F.relu(h)))
        return x

    def folded(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        for i, w in enumerate(m.layers):
            h = tag(f"conv{i}", F.conv2d(x, w.w, w.b, padding=1))
            x = tag(f"x{i}", x + tag(f"act{i}", F.relu(h)))
        return x

    return {
        "A": Program(normed, {}, layers),
        "B": Program(folded, {}, [folded_weights(layer) for layer in layers]),
        "args": [normal(g, 2, channels, 12, 12)],
    }


@PAIRS.add
def residual_added_in_place() -> Pair:
    """RMSNorm blocks whose residual is a new tensor at each addition, or one buffer that all add to."""
    g = seeded(504)
    layers = [
        {"norm": gain(g, WIDTH), "gate_up": matrix(g, 2 * INNER, WIDTH), "down": matrix(g, WIDTH, INNER)}
        for _ in range(3)
    ]

    def functional(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        for i, w in enumerate(m.layers):
            normed = tag(f"normed{i}", F.rms_norm(x, (WIDTH,), w.norm, 1e-6))
            gate, up = tag(f"gate_up{i}", F.linear(normed, w.gate_up)).chunk(2, -1)
            x = tag(f"x{i}", x + tag(f"down{i}", F.linear(tag(f"h{i}", F.silu(gate) * up), w.down)))
        return x

    def in_place(m: Program, x: Tensor) -> Tensor:
        residual, hidden = tag("x", x).clone(), torch.zeros_like(x)
        for i, w in enumerate(m.layers):
            residual.add_(hidden)
            if i:
                tag(f"x{i - 1}", residual)
            variance = residual.float().square().mean(-1, keepdim=True)
            normed = tag(f"normed{i}", (residual * torch.rsqrt(variance.add_(1e-6))).mul_(w.norm))
            gate_up = tag(f"gate_up{i}", F.linear(normed, w.gate_up))
            active = torch.empty(BATCH, LENGTH, INNER)
            torch.mul(F.silu(gate_up[..., :INNER]), gate_up[..., INNER:], out=active)
            hidden = tag(f"down{i}", F.linear(tag(f"h{i}", active), w.down))
        return tag(f"x{len(m.layers) - 1}", residual.add_(hidden))

    return {
        "A": Program(functional, {}, layers),
        "B": Program(in_place, {}, layers),
        "args": [normal(g, BATCH, LENGTH, WIDTH)],
    }


@PAIRS.add
def modulation_one_projection_vs_six() -> Pair:
    """A diffusion transformer's block: shift, scale and gate of two branches from one projection, or six."""
    g = seeded(505)
    names = ("shift1", "scale1", "gate1", "shift2", "scale2", "gate2")
    separate = {name: matrix(g, WIDTH, WIDTH) for name in names}
    ws = matrices(g, "mix", WIDTH, WIDTH) | {"up": matrix(g, INNER, WIDTH), "down": matrix(g, WIDTH, INNER)}
    x, condition = normal(g, 8, LENGTH, WIDTH), normal(g, 8, WIDTH)

    def block(m: Program, x: Tensor, modulation: dict[str, Tensor]) -> Tensor:
        shift1, scale1, gate1, shift2, scale2, gate2 = (tag(name, modulation[name]) for name in names)
        normed = tag("normed1", F.layer_norm(x, (WIDTH,)) * (1 + scale1[:, None]) + shift1[:, None])
        x = tag("x1", x + gate1[:, None] * tag("mix", F.linear(normed, m.mix)))
        normed = tag("normed2", F.layer_norm(x, (WIDTH,)) * (1 + scale2[:, None]) + shift2[:, None])
        hidden = tag("hidden", F.gelu(F.linear(normed, m.up), approximate="tanh"))
        return tag("y", x + gate2[:, None] * F.linear(hidden, m.down))

    def one(m: Program, x: Tensor, condition: Tensor) -> Tensor:
        active = tag("active", F.silu(tag("condition", condition)))
        chunks = tag("modulation", F.linear(active, m.modulation)).chunk(6, dim=-1)
        return block(m, tag("x", x), dict(zip(names, chunks, strict=True)))

    def six(m: Program, x: Tensor, condition: Tensor) -> Tensor:
        active = tag("active", F.silu(tag("condition", condition)))
        return block(m, tag("x", x), {name: F.linear(active, getattr(m, name)) for name in names})

    return {
        "A": Program(one, ws | {"modulation": torch.cat(list(separate.values()))}),
        "B": Program(six, ws | separate),
        "args": [x, condition],
        "parts": {"modulation": list(names)},
    }
