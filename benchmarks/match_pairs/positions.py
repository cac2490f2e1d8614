"""Where tokens stand: rotations in their conventions, biases by distance, and windows."""

from collections.abc import Callable
from math import sqrt

import torch
import torch.nn.functional as F
from match_pairs.convention import (
    MINUS_INFINITY,
    Pair,
    Pairs,
    Program,
    causal_mask,
    matrices,
    merge_heads,
    normal,
    seeded,
    split_heads,
    tag,
)
from torch import Tensor

BATCH, LENGTH, WIDTH, HEADS = 2, 32, 64, 4
HEAD_WIDTH = WIDTH // HEADS
SCALE = 1 / sqrt(HEAD_WIDTH)

Mix = Callable[[Tensor, Tensor, Tensor], Tensor]

PAIRS = Pairs()


def angles(width: int, positions: Tensor, theta: float = 10_000.0) -> Tensor:
    """[T, width / 2]"""
    frequencies = 1.0 / theta ** (torch.arange(0, width, 2).float() / width)
    return torch.outer(positions.float(), frequencies)


def rotate_half(x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([-second, first], dim=-1)


def halves_first(w: Tensor) -> Tensor:
    """Rows of every head, the even ones first: weights for interleaved pairs become ones for halves."""
    by_head = w.view(HEADS, HEAD_WIDTH // 2, 2, WIDTH)
    return by_head.transpose(1, 2).reshape(w.shape)


def heads(w: Tensor, x: Tensor) -> Tensor:
    return split_heads(F.linear(x, w), HEADS)


def attended(q: Tensor, k: Tensor, v: Tensor, mark: str = "") -> Tensor:
    """Causal attention, labelled."""
    scores = tag(f"scores{mark}", q @ k.transpose(-1, -2) * SCALE)
    probs = tag(f"probs{mark}", torch.softmax(scores + causal_mask(q.shape[2]), -1))
    return tag(f"context{mark}", probs @ v)


@PAIRS.add
def rope_half_vs_complex() -> Pair:
    """Rotation of halves by cosines and sines, or of complex numbers; q and k differ by a permutation."""
    g = seeded(201)
    ws = matrices(g, "wq wk wv wo", WIDTH, WIDTH)
    permuted = ws | {name: halves_first(ws[name]) for name in ("wq", "wk")}
    x = normal(g, BATCH, LENGTH, WIDTH)

    def halves(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        angle = angles(HEAD_WIDTH, torch.arange(LENGTH))
        cos, sin = torch.cat([angle, angle], -1).cos(), torch.cat([angle, angle], -1).sin()
        q, k, v = tag("q", heads(m.wq, x)), tag("k", heads(m.wk, x)), tag("v", heads(m.wv, x))
        q = tag("q_rotated", q * cos + rotate_half(q) * sin)
        k = tag("k_rotated", k * cos + rotate_half(k) * sin)
        return tag("y", x + F.linear(merge_heads(attended(q, k, v)), m.wo))

    def turned(x: Tensor, turn: Tensor) -> Tensor:
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turn).flatten(-2)

    def complex_numbers(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        angle = angles(HEAD_WIDTH, torch.arange(LENGTH))
        turn = torch.polar(torch.ones_like(angle), angle)
        q, k, v = tag("q", heads(m.wq, x)), tag("k", heads(m.wk, x)), tag("v", heads(m.wv, x))
        q, k = tag("q_rotated", turned(q, turn)), tag("k_rotated", turned(k, turn))
        return tag("y", x + F.linear(merge_heads(attended(q, k, v)), m.wo))

    return {"A": Program(halves, permuted), "B": Program(complex_numbers, ws), "args": [x]}


@PAIRS.add
def rope_computed_vs_looked_up() -> Pair:
    """Two layers: halves with tables computed at every layer, or interleaved pairs with stored ones."""
    g = seeded(202)
    layers = [matrices(g, "wq wk wv wo", WIDTH, WIDTH) for _ in range(2)]
    permuted = [layer | {name: halves_first(layer[name]) for name in ("wq", "wk")} for layer in layers]
    x = normal(g, BATCH, LENGTH, WIDTH)
    positions = torch.arange(5, 5 + LENGTH)
    table = angles(HEAD_WIDTH, torch.arange(64))
    tables = {"cos_table": table.cos(), "sin_table": table.sin()}

    def computed(m: Program, x: Tensor, positions: Tensor) -> Tensor:
        tag("x", x)
        for i, w in enumerate(m.layers):
            angle = angles(HEAD_WIDTH, positions).repeat(1, 2)
            q, k, v = tag(f"q{i}", heads(w.wq, x)), tag(f"k{i}", heads(w.wk, x)), tag(f"v{i}", heads(w.wv, x))
            q = tag(f"q_rotated{i}", q * angle.cos() + rotate_half(q) * angle.sin())
            k = tag(f"k_rotated{i}", k * angle.cos() + rotate_half(k) * angle.sin())
            x = tag(f"x{i}", x + F.linear(merge_heads(attended(q, k, v, str(i))), w.wo))
        return x

    def interleaved(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        even, odd = x[..., ::2], x[..., 1::2]
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)

    def looked_up(m: Program, x: Tensor, positions: Tensor) -> Tensor:
        tag("x", x)
        cos, sin = m.cos_table.index_select(0, positions), m.sin_table.index_select(0, positions)
        for i, w in enumerate(m.layers):
            q, k, v = tag(f"q{i}", heads(w.wq, x)), tag(f"k{i}", heads(w.wk, x)), tag(f"v{i}", heads(w.wv, x))
            q = tag(f"q_rotated{i}", interleaved(q, cos, sin))
            k = tag(f"k_rotated{i}", interleaved(k, cos, sin))
            context = tag(f"context{i}", F.scaled_dot_product_attention(q, k, v, is_causal=True))
            x = tag(f"x{i}", x + F.linear(merge_heads(context), w.wo))
        return x

    return {
        "A": Program(computed, {}, permuted),
        "B": Program(looked_up, tables, layers),
        "args": [x, positions],
    }


@PAIRS.add
def rope_of_a_part() -> Pair:
    """Half of every head rotates: split off and joined again, or the rest rotated by nothing."""
    g = seeded(203)
    ws = matrices(g, "wq wk wv wo", WIDTH, WIDTH)
    x = normal(g, BATCH, LENGTH, WIDTH)
    turning = HEAD_WIDTH // 2

    def split(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        angle = angles(turning, torch.arange(LENGTH)).repeat(1, 2)
        cos, sin = angle.cos(), angle.sin()

        def rotated(x: Tensor) -> Tensor:
            turned, kept = x[..., :turning], x[..., turning:]
            return torch.cat([turned * cos + rotate_half(turned) * sin, kept], -1)

        q, k, v = tag("q", heads(m.wq, x)), tag("k", heads(m.wk, x)), tag("v", heads(m.wv, x))
        q, k = tag("q_rotated", rotated(q)), tag("k_rotated", rotated(k))
        return tag("y", x + F.linear(merge_heads(attended(q, k, v)), m.wo))

    def padded(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        angle = angles(turning, torch.arange(LENGTH)).repeat(1, 2)
        cos = F.pad(angle.cos(), (0, HEAD_WIDTH - turning), value=1.0)
        sin = F.pad(angle.sin(), (0, HEAD_WIDTH - turning), value=0.0)
        partner = torch.arange(HEAD_WIDTH)
        partner[:turning] = partner[:turning].roll(turning // 2)
        sign = torch.ones(HEAD_WIDTH)
        sign[: turning // 2] = -1.0

        q, k, v = tag("q", heads(m.wq, x)), tag("k", heads(m.wk, x)), tag("v", heads(m.wv, x))
        q = tag("q_rotated", q * cos + q[..., partner] * (sign * sin))
        k = tag("k_rotated", k * cos + k[..., partner] * (sign * sin))
        context = tag("context", F.scaled_dot_product_attention(q, k, v, is_causal=True))
        return tag("y", x + F.linear(merge_heads(context), m.wo))

    return {"A": Program(split, ws), "B": Program(padded, ws), "args": [x]}


def two_layers(m: Program, x: Tensor, mix: Mix) -> Tensor:
    """Residual attention layers whose context ``mix`` makes of q, k and v."""
    tag("x", x)
    for i, w in enumerate(m.layers):
        q, k, v = tag(f"q{i}", heads(w.wq, x)), tag(f"k{i}", heads(w.wk, x)), tag(f"v{i}", heads(w.wv, x))
        context = tag(f"context{i}", mix(q, k, v))
        x = tag(f"x{i}", x + F.linear(merge_heads(context), w.wo))
    return x


def slopes() -> Tensor:
    return torch.pow(2.0, -8.0 * torch.arange(1, HEADS + 1) / HEADS)


@PAIRS.add
def alibi_once_vs_each_layer() -> Pair:
    """A bias with the mask in it, made once and added to all; or computed and masked at every layer."""
    g = seeded(204)
    layers = [matrices(g, "wq wk wv wo", WIDTH, WIDTH) for _ in range(2)]
    x = normal(g, BATCH, LENGTH, WIDTH)

    def once(m: Program, x: Tensor) -> Tensor:
        distance = torch.arange(LENGTH)[None] - torch.arange(LENGTH)[:, None]
        bias = slopes()[:, None, None] * distance + causal_mask(LENGTH)
        return two_layers(
            m, x, lambda q, k, v: torch.softmax(torch.matmul(q, k.mT) / sqrt(HEAD_WIDTH) + bias, -1) @ v
        )

    def every_layer(m: Program, x: Tensor) -> Tensor:
        def mix(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            key_bias = slopes().view(1, HEADS, 1, 1) * torch.arange(LENGTH).view(1, 1, 1, LENGTH)
            scores = torch.baddbmm(
                key_bias.expand(BATCH, HEADS, LENGTH, LENGTH).reshape(-1, LENGTH, LENGTH),
                q.flatten(0, 1),
                k.flatten(0, 1).mT,
                alpha=SCALE,
            )
            future = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
            probs = torch.softmax(scores.masked_fill(future, torch.finfo(scores.dtype).min), -1)
            return torch.bmm(probs, v.flatten(0, 1)).view(BATCH, HEADS, LENGTH, HEAD_WIDTH)

        return two_layers(m, x, mix)

    return {"A": Program(once, {}, layers), "B": Program(every_layer, {}, layers), "args": [x]}


@PAIRS.add
def sliding_window_additive_vs_boolean() -> Pair:
    g = seeded(205)
    layers = [matrices(g, "wq wk wv wo", WIDTH, WIDTH) for _ in range(2)]
    x = normal(g, BATCH, LENGTH, WIDTH)
    window = 8

    def additive(m: Program, x: Tensor) -> Tensor:
        past = torch.full((LENGTH, LENGTH), MINUS_INFINITY).tril(-window)
        mask = (causal_mask(LENGTH) + past)[None, None]
        return two_layers(m, x, lambda q, k, v: torch.softmax(q @ k.mT * SCALE + mask, -1) @ v)

    def boolean(m: Program, x: Tensor) -> Tensor:
        age = torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)[None]
        seen = (age >= 0) & (age < window)
        return two_layers(m, x, lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=seen))

    return {"A": Program(additive, {}, layers), "B": Program(boolean, {}, layers), "args": [x]}


@PAIRS.add
def relative_bias_embedded_vs_selected() -> Pair:
    """T5: unscaled scores plus a learned bias by bucketed distance, shared by two layers."""
    g = seeded(206)
    layers = [matrices(g, "wq wk wv wo", WIDTH, WIDTH) for _ in range(2)]
    buckets = 16
    ws = {"bias": normal(g, buckets, HEADS)}
    x = normal(g, BATCH, LENGTH, WIDTH) * 0.5

    def bucket() -> Tensor:
        distance = (torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)[None]).abs()
        far = 8 + (torch.log(distance.clamp(min=1) / 8.0) / sqrt(2)).mul(6).long()
        return torch.where(distance < 8, distance, far.clamp(max=buckets - 1))

    def embedded(m: Program, x: Tensor) -> Tensor:
        bias = tag("bias", F.embedding(bucket(), m.bias).permute(2, 0, 1))[None]
        return two_layers(m, x, lambda q, k, v: torch.softmax(torch.matmul(q, k.mT) + bias, dim=-1) @ v)

    def selected(m: Program, x: Tensor) -> Tensor:
        rows = m.bias.t().contiguous().index_select(1, bucket().flatten())
        bias = tag("bias", rows.view(1, HEADS, LENGTH, LENGTH))

        def mix(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=1.0)

        return two_layers(m, x, mix)

    return {"A": Program(embedded, ws, layers), "B": Program(selected, ws, layers), "args": [x]}
