"""Images and sequences under convolutions: as one operator, or as matmuls, shifts and reshapes."""

from collections.abc import Callable
from math import sqrt

import torch
import torch.nn.functional as F
from match_pairs.convention import (
    Pair,
    Pairs,
    Program,
    matrices,
    matrix,
    merge_heads,
    norm_weights,
    normal,
    offset,
    seeded,
    split_heads,
    tag,
)
from torch import Generator, Tensor

PAIRS = Pairs()


def kernel(g: Generator, outputs: int, inputs: int, side: int = 3) -> Tensor:
    return matrix(g, outputs, inputs * side * side).view(outputs, inputs, side, side)


@PAIRS.add
def conv2d_vs_unfold() -> Pair:
    g = seeded(701)
    ws = {"w1": kernel(g, 24, 12), "b1": offset(g, 24), "w2": kernel(g, 32, 24), "b2": offset(g, 32)}

    def direct(m: Program, x: Tensor) -> Tensor:
        h = tag("conv1", F.conv2d(tag("x", x), m.w1, m.b1, padding=1))
        h = tag("act", F.relu(h))
        h = tag("conv2", F.conv2d(h, m.w2, m.b2, stride=2, padding=1))
        return tag("pooled", F.adaptive_avg_pool2d(h, (2, 2)))

    def by_matmul(x: Tensor, w: Tensor, b: Tensor, stride: int) -> Tensor:
        columns = F.unfold(x, 3, padding=1, stride=stride)
        out = torch.matmul(w.flatten(1), columns) + b[:, None]
        side = x.shape[-1] // stride
        return out.view(x.shape[0], w.shape[0], side, side)

    def unfolded(m: Program, x: Tensor) -> Tensor:
        h = tag("conv1", by_matmul(tag("x", x), m.w1, m.b1, stride=1))
        h = tag("act", h.clamp(min=0))
        h = tag("conv2", by_matmul(h, m.w2, m.b2, stride=2))
        side = h.shape[-1] // 2
        return tag("pooled", h.view(h.shape[0], -1, 2, side, 2, side).mean(dim=(3, 5)))

    return {"A": Program(direct, ws), "B": Program(unfolded, ws), "args": [normal(g, 3, 12, 16, 16)]}


@PAIRS.add
def patches_convolved_vs_projected() -> Pair:
    """A vision transformer's first layer: patches by a strided convolution, or cut out and projected."""
    g = seeded(702)
    side, patch, width, heads = 32, 8, 64, 4
    ws = {"w": kernel(g, width, 3, patch), "b": offset(g, width)}
    ws |= {"token": normal(g, 1, 1, width), "places": normal(g, 1, 17, width) * 0.3}
    ws |= norm_weights(g, "norm", width=width) | matrices(g, "wq wk wv wo", width, width)

    def encode(m: Program, patches: Tensor) -> Tensor:
        first = m.token.expand(patches.shape[0], -1, -1)
        x = tag("tokens", torch.cat([first, tag("patches", patches)], dim=1) + m.places)
        normed = tag("normed", F.layer_norm(x, (width,), m.norm_gain, m.norm_offset))
        q = tag("q", split_heads(F.linear(normed, m.wq), heads))
        k = tag("k", split_heads(F.linear(normed, m.wk), heads))
        v = tag("v", split_heads(F.linear(normed, m.wv), heads))
        context = tag("context", F.scaled_dot_product_attention(q, k, v))
        return tag("y", x + F.linear(merge_heads(context), m.wo))

    def convolved(m: Program, image: Tensor) -> Tensor:
        grid = F.conv2d(tag("image", image), m.w, m.b, stride=patch)
        return encode(m, grid.flatten(2).transpose(1, 2))

    def projected(m: Program, image: Tensor) -> Tensor:
        n = side // patch
        cut = tag("image", image).reshape(-1, 3, n, patch, n, patch).permute(0, 2, 4, 1, 3, 5)
        rows = cut.reshape(image.shape[0], n * n, 3 * patch * patch)
        return encode(m, F.linear(rows, m.w.flatten(1), m.b))

    return {"A": Program(convolved, ws), "B": Program(projected, ws), "args": [normal(g, 4, 3, side, side)]}


@PAIRS.add
def convnext_channels_first_vs_last() -> Pair:
    g = seeded(703)
    channels, inner = 24, 96
    ws = {"spatial": kernel(g, channels, 1, 7), "spatial_bias": offset(g, channels)}
    ws |= norm_weights(g, "norm", width=channels) | {"up_bias": offset(g, inner)}
    ws |= {"up": matrix(g, inner, channels), "down": matrix(g, channels, inner)}

    def first(m: Program, x: Tensor) -> Tensor:
        h = tag("spatial", F.conv2d(tag("x", x), m.spatial, m.spatial_bias, padding=3, groups=channels))
        centred = h - h.mean(1, keepdim=True)
        h = centred * torch.rsqrt(centred.pow(2).mean(1, keepdim=True) + 1e-6)
        h = tag("normed", h * m.norm_gain[:, None, None] + m.norm_offset[:, None, None])
        h = tag("hidden", F.gelu(tag("up", F.conv2d(h, m.up[:, :, None, None], m.up_bias))))
        return tag("y", x + tag("down", F.conv2d(h, m.down[:, :, None, None])))

    def last(m: Program, x: Tensor) -> Tensor:
        h = F.conv2d(tag("x", x), m.spatial, m.spatial_bias, padding=3, groups=channels)
        h = tag("spatial", h.permute(0, 2, 3, 1))
        h = tag("normed", F.layer_norm(h, (channels,), m.norm_gain, m.norm_offset, 1e-6))
        h = tag("hidden", F.gelu(tag("up", F.linear(h, m.up, m.up_bias))))
        return tag("y", x + tag("down", F.linear(h, m.down)).permute(0, 3, 1, 2))

    return {"A": Program(first, ws), "B": Program(last, ws), "args": [normal(g, 2, channels, 14, 14)]}


@PAIRS.add
def causal_convolution_vs_shifts() -> Pair:
    """A gated short convolution, as before a state-space layer: grouped and cropped, or shifted products."""
    g = seeded(704)
    width, taps, length = 64, 4, 40
    ws = {"both": matrix(g, 2 * width, width), "out": matrix(g, width, width)}
    ws |= {"taps": matrix(g, width, taps), "bias": offset(g, width)}

    def grouped(m: Program, x: Tensor) -> Tensor:
        inner, gate = tag("both", F.linear(tag("x", x), m.both)).chunk(2, dim=-1)
        tag("inner", inner)
        tag("gate", gate)
        h = F.conv1d(inner.mT, m.taps[:, None], m.bias, padding=taps - 1, groups=width)
        active = tag("active", F.silu(tag("convolved", h[..., :length]))).mT
        return tag("y", x + F.linear(tag("gated", active * F.silu(gate)), m.out))

    def shifted(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        inner = tag("inner", F.linear(x, m.both[:width]))
        gate = tag("gate", F.linear(x, m.both[width:]))
        padded = F.pad(inner, (0, 0, taps - 1, 0))
        h = m.bias + padded[:, :length] * m.taps[:, 0]
        for tap in range(1, taps):
            h = h + padded[:, tap : tap + length] * m.taps[:, tap]
        h = tag("convolved", h)
        active = tag("active", h * torch.sigmoid(h))
        gated = tag("gated", active * (gate / (1 + torch.exp(-gate))))
        return tag("y", x + F.linear(gated, m.out))

    return {
        "A": Program(grouped, ws),
        "B": Program(shifted, ws),
        "args": [normal(g, 2, length, width)],
        "parts": {"both": ["inner", "gate"]},
    }


Norm = Callable[[Tensor, Tensor, Tensor], Tensor]
Image = Callable[[Tensor], Tensor]


def unet(norm: Norm, silu: Image, halve: Image, double: Image) -> Callable[[Program, Tensor], Tensor]:
    """One level down and up again, with a skip connection."""

    def run(m: Program, x: Tensor) -> Tensor:
        down = tag("stem", F.conv2d(tag("x", x), m.stem, padding=1))
        h = tag("act1", silu(tag("normed1", norm(down, m.one_gain, m.one_offset))))
        skip = tag("skip", down + F.conv2d(h, m.down, padding=1))
        h = tag("small", halve(skip))
        h = tag("act2", silu(tag("normed2", norm(h, m.two_gain, m.two_offset))))
        h = tag("middle", F.conv2d(h, m.middle, padding=1))
        h = tag("joined", torch.cat([double(h), skip], dim=1))
        h = tag("act3", silu(tag("normed3", norm(h, m.three_gain, m.three_offset))))
        return tag("y", F.conv2d(h, m.up, padding=1))

    return run


@PAIRS.add
def unet_builtin_vs_by_hand() -> Pair:
    g = seeded(705)
    channels, groups = 16, 4
    ws = norm_weights(g, "one", "two", width=channels) | norm_weights(g, "three", width=2 * channels)
    ws |= {"stem": kernel(g, channels, 4), "down": kernel(g, channels, channels)}
    ws |= {"middle": kernel(g, channels, channels), "up": kernel(g, 4, 2 * channels)}

    def group_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.group_norm(x, groups, weight, bias, 1e-6)

    def by_hand(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        grouped = x.view(x.shape[0], groups, -1, *x.shape[2:])
        variance, mean = torch.var_mean(grouped, dim=(2, 3, 4), correction=0, keepdim=True)
        scaled = ((grouped - mean) / (variance + 1e-6).sqrt()).view_as(x)
        return scaled * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)

    def halve(x: Tensor) -> Tensor:
        return x.unfold(2, 2, 2).unfold(3, 2, 2).mean(dim=(-2, -1))

    def double(x: Tensor) -> Tensor:
        return x.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)

    builtin = unet(
        group_norm, F.silu, lambda x: F.avg_pool2d(x, 2), lambda x: F.interpolate(x, scale_factor=2.0)
    )
    manual = unet(by_hand, lambda x: x * torch.sigmoid(x), halve, double)
    return {"A": Program(builtin, ws), "B": Program(manual, ws), "args": [normal(g, 2, 4, 16, 16)]}


@PAIRS.add
def lstm_fused_vs_cells() -> Pair:
    """Two layers over a sequence, by PyTorch's LSTM or gate by gate."""
    g = seeded(706)
    width, length, batch = 48, 12, 8
    layers = [
        {
            "wx": matrix(g, 4 * width, width),
            "wh": matrix(g, 4 * width, width),
            "bx": offset(g, 4 * width),
            "bh": offset(g, 4 * width),
        }
        for _ in range(2)
    ]
    ws = {"head": matrix(g, 150, width) * sqrt(2)}

    def fused(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        for i, w in enumerate(m.layers):
            zero = x.new_zeros(1, batch, width)
            weights = (w.wx, w.wh, w.bx, w.bh)
            x, last, cell = torch.lstm(x, (zero, zero), weights, True, 1, 0.0, False, False, True)
            tag(f"states{i}", x)
            tag(f"last{i}", last)
            tag(f"cell{i}", cell)
        return tag("logits", F.linear(x, m.head))

    def cells(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        for i, w in enumerate(m.layers):
            state, cell = x.new_zeros(batch, width), x.new_zeros(batch, width)
            inputs, states = F.linear(x, w.wx, w.bx), list[Tensor]()
            for t in range(length):
                gates = inputs[:, t] + F.linear(state, w.wh, w.bh)
                entering, forgotten, new, leaving = gates.chunk(4, dim=1)
                cell = torch.sigmoid(forgotten) * cell + torch.sigmoid(entering) * torch.tanh(new)
                state = torch.sigmoid(leaving) * torch.tanh(cell)
                states.append(state)
            tag(f"last{i}", state)
            tag(f"cell{i}", cell)
            x = tag(f"states{i}", torch.stack(states, dim=1))
        return tag("logits", F.linear(x, m.head))

    return {
        "A": Program(fused, ws, layers),
        "B": Program(cells, ws, layers),
        "args": [normal(g, batch, length, width)],
    }
