"""Sixteen pairs written before the matcher's rules were tuned, and tuned on: what one operator may hide, what
may be dead, equal or zero, a cache written in place, masks, and the backward of a block."""

from collections.abc import Callable
from math import sqrt

import torch
import torch.nn.functional as F
from match_pairs.convention import (
    Pair,
    Pairs,
    Program,
    causal_mask,
    collect,
    gain,
    matrices,
    matrix,
    merge_heads,
    normal,
    rms_norm_by_hand,
    seeded,
    split_heads,
    tag,
)
from torch import Tensor

__all__ = ["PAIRS", "collect"]

BATCH, LENGTH, WIDTH, HEADS = 2, 16, 64, 4
HEAD_WIDTH = WIDTH // HEADS

Activation = Callable[[Tensor], Tensor]
Attention = Callable[[Tensor, Tensor, Tensor], Tensor]

PAIRS = Pairs()


def silu_by_hand(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


def rms_norm(x: Tensor) -> Tensor:
    return F.rms_norm(x, (WIDTH,), None, 1e-6)


def heads(x: Tensor) -> Tensor:
    return split_heads(x, x.shape[-1] // HEAD_WIDTH)


def projected(m: Program, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v by head, labelled."""
    q = tag("q", heads(F.linear(x, m.wq)))
    k = tag("k", heads(F.linear(x, m.wk)))
    v = tag("v", heads(F.linear(x, m.wv)))
    return q, k, v


@PAIRS.add
def glu_one_op() -> Pair:
    g = seeded(21)
    inner = 96
    both, down = matrix(g, 2 * inner, WIDTH), matrix(g, WIDTH, inner)

    def fused(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        hidden = tag("h", F.glu(tag("gu", F.linear(x, m.both)), -1))
        return tag("y", F.linear(hidden, m.down))

    def separate(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        up, gate = F.linear(x, m.up), F.linear(x, m.gate)
        return tag("y", F.linear(tag("h", up * torch.sigmoid(gate)), m.down))

    return {
        "A": Program(fused, {"both": both, "down": down}),
        "B": Program(separate, {"up": both[:inner].clone(), "gate": both[inner:].clone(), "down": down}),
        "args": [normal(g, BATCH, LENGTH, WIDTH)],
    }


@PAIRS.add
def folded_norm_weight() -> Pair:
    g = seeded(22)
    scale, w = gain(g, WIDTH), matrix(g, WIDTH, WIDTH)

    def scaled(m: Program, x: Tensor) -> Tensor:
        return tag("y", F.linear(F.rms_norm(tag("x", x), (WIDTH,), m.scale, 1e-6), m.w))

    def folded(m: Program, x: Tensor) -> Tensor:
        return tag("y", F.linear(rms_norm(tag("x", x)), m.w))

    return {
        "A": Program(scaled, {"scale": scale, "w": w}),
        "B": Program(folded, {"w": w * scale}),
        "args": [normal(g, BATCH, LENGTH, WIDTH)],
    }


@PAIRS.add
def recomputation() -> Pair:
    g = seeded(23)
    ws = matrices(g, "w1 w2", WIDTH, WIDTH)

    def once(m: Program, x: Tensor) -> Tensor:
        hidden = tag("h", torch.tanh(F.linear(tag("x", x), m.w1)))
        return tag("y", F.linear(hidden, m.w2) * hidden)

    def twice(m: Program, x: Tensor) -> Tensor:
        hidden = tag("h", torch.tanh(F.linear(tag("x", x), m.w1)))
        mixed = F.linear(hidden, m.w2)
        return tag("y", mixed * torch.tanh(F.linear(x, m.w1)))

    return {"A": Program(once, ws), "B": Program(twice, ws), "args": [normal(g, BATCH, LENGTH, WIDTH)]}


@PAIRS.add
def identical_branches() -> Pair:
    g = seeded(24)
    w = matrix(g, WIDTH, WIDTH)

    def two(m: Program, x: Tensor) -> Tensor:
        left = tag("l", torch.relu(F.linear(tag("x", x), m.w)))
        right = torch.relu(F.linear(x, m.w))
        return tag("y", left * torch.sigmoid(right))

    def one(m: Program, x: Tensor) -> Tensor:
        return tag("y", F.silu(tag("l", torch.relu(F.linear(tag("x", x), m.w)))))

    return {
        "A": Program(two, {"w": w}),
        "B": Program(one, {"w": w}),
        "args": [normal(g, BATCH, LENGTH, WIDTH)],
    }


@PAIRS.add
def soft_moe() -> Pair:
    g = seeded(25)
    router = matrix(g, 4, WIDTH)
    experts = torch.stack([matrix(g, WIDTH, WIDTH) for _ in range(4)])

    def looped(m: Program, x: Tensor) -> Tensor:
        p = tag("p", torch.softmax(F.linear(tag("x", x), m.router), -1))
        outputs = (p[..., e : e + 1] * torch.relu(F.linear(x, m.experts[e])) for e in range(4))
        mixed = sum(outputs)
        assert isinstance(mixed, Tensor)
        return tag("y", mixed)

    def batched(m: Program, x: Tensor) -> Tensor:
        p = tag("p", torch.softmax(F.linear(tag("x", x), m.router), -1))
        hidden = torch.relu(torch.einsum("bsd,eod->bseo", x, m.experts))
        return tag("y", (hidden * p[..., None]).sum(2))

    ws = {"router": router, "experts": experts}
    return {
        "A": Program(looped, ws),
        "B": Program(batched, ws),
        "args": [normal(g, BATCH, LENGTH, WIDTH)],
    }


@PAIRS.add
def inplace_kv() -> Pair:
    g = seeded(26)
    ws = matrices(g, "wq wk wv wo", WIDTH, WIDTH)
    past, room = 8, 32
    ws |= {name: normal(g, BATCH, HEADS, past, HEAD_WIDTH) for name in ("past_k", "past_v")}

    def attended(m: Program, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        context = tag("ctx", F.scaled_dot_product_attention(q, tag("kk", keys), tag("vv", values)))
        return tag("y", F.linear(merge_heads(context), m.wo))

    def growing(m: Program, x: Tensor) -> Tensor:
        q, k, v = projected(m, tag("x", x))
        return attended(m, q, torch.cat([m.past_k, k], 2), torch.cat([m.past_v, v], 2))

    def in_place(m: Program, x: Tensor) -> Tensor:
        q, k, v = projected(m, tag("x", x))
        keys, values = (torch.zeros(BATCH, HEADS, room, HEAD_WIDTH) for _ in range(2))
        keys[:, :, :past], values[:, :, :past] = m.past_k, m.past_v
        end = past + LENGTH
        keys[:, :, past:end], values[:, :, past:end] = k, v
        return attended(m, q, keys[:, :, :end], values[:, :, :end])

    return {
        "A": Program(growing, ws),
        "B": Program(in_place, ws),
        "args": [normal(g, BATCH, LENGTH, WIDTH)],
    }


@PAIRS.add
def zero_lora() -> Pair:
    g = seeded(27)
    ws = matrices(g, "w1 w2", WIDTH, WIDTH)
    adapter = {"down": matrix(g, 4, WIDTH), "up": torch.zeros(WIDTH, 4)}

    def adapted(m: Program, x: Tensor) -> Tensor:
        hidden = tag("h", F.linear(tag("x", x), m.w1) + F.linear(F.linear(x, m.down), m.up))
        return tag("y", F.linear(torch.relu(hidden), m.w2))

    def plain(m: Program, x: Tensor) -> Tensor:
        return tag("y", F.linear(torch.relu(tag("h", F.linear(tag("x", x), m.w1))), m.w2))

    return {
        "A": Program(adapted, ws | adapter),
        "B": Program(plain, ws),
        "args": [normal(g, BATCH, LENGTH, WIDTH)],
    }


@PAIRS.add
def zero_init_blocks() -> Pair:
    """Blocks that add nothing yet: y is x."""
    g = seeded(28)
    ws = matrices(g, "w0 w1 w2", WIDTH, WIDTH) | {"zero": torch.zeros(WIDTH, WIDTH)}

    def blocks(norm: Activation) -> Callable[[Program, Tensor], Tensor]:
        def run(m: Program, x: Tensor) -> Tensor:
            tag("x", x)
            for w in (m.w0, m.w1, m.w2):
                x = x + F.linear(torch.relu(F.linear(norm(x), w)), m.zero)
            return tag("y", x)

        return run

    return {
        "A": Program(blocks(rms_norm), ws),
        "B": Program(blocks(lambda x: rms_norm_by_hand(x, None)), ws),
        "args": [normal(g, BATCH, LENGTH, WIDTH)],
    }


@PAIRS.add
def padded_batch() -> Pair:
    g = seeded(29)
    ws = matrices(g, "w1 w2", WIDTH, WIDTH)

    def exact(m: Program, x: Tensor) -> Tensor:
        return tag("y", F.linear(tag("h", torch.relu(F.linear(tag("x", x), m.w1))), m.w2))

    def padded(m: Program, x: Tensor) -> Tensor:
        longer = F.pad(tag("x", x), (0, 0, 0, 8))
        hidden = torch.relu(F.linear(longer, m.w1))
        tag("h", hidden[:, :LENGTH])
        return tag("y", F.linear(hidden, m.w2)[:, :LENGTH])

    return {"A": Program(exact, ws), "B": Program(padded, ws), "args": [normal(g, BATCH, LENGTH, WIDTH)]}


@PAIRS.add
def tied_layers() -> Pair:
    g = seeded(30)
    w = matrix(g, WIDTH, WIDTH)

    def layers(act: Activation) -> Callable[[Program, Tensor], Tensor]:
        def run(m: Program, x: Tensor) -> Tensor:
            tag("x", x)
            for i in range(4):
                x = tag(f"h{i}", act(F.linear(x, m.w)))
            return x

        return run

    return {
        "A": Program(layers(F.silu), {"w": w}),
        "B": Program(layers(silu_by_hand), {"w": w}),
        "args": [normal(g, BATCH, LENGTH, WIDTH)],
    }


@PAIRS.add
def equal_prompts() -> Pair:
    """A batch of one prompt twice."""
    g = seeded(31)
    ws = matrices(g, "w1 w2", WIDTH, WIDTH)
    x = normal(g, 1, LENGTH, WIDTH).expand(BATCH, LENGTH, WIDTH).contiguous()

    def mlp(act: Activation) -> Callable[[Program, Tensor], Tensor]:
        def run(m: Program, x: Tensor) -> Tensor:
            return tag("y", F.linear(act(tag("h", F.linear(tag("x", x), m.w1))), m.w2))

        return run

    return {"A": Program(mlp(F.silu), ws), "B": Program(mlp(silu_by_hand), ws), "args": [x]}


@PAIRS.add
def logits_last_vs_all() -> Pair:
    g = seeded(32)
    head, w = matrix(g, 101, WIDTH), matrix(g, WIDTH, WIDTH)

    def every(m: Program, x: Tensor) -> Tensor:
        return F.linear(tag("h", torch.relu(F.linear(tag("x", x), m.w))), m.head)

    def last(m: Program, x: Tensor) -> Tensor:
        return F.linear(tag("h", torch.relu(F.linear(tag("x", x), m.w)))[:, -1:], m.head)

    ws = {"head": head, "w": w}
    return {"A": Program(every, ws), "B": Program(last, ws), "args": [normal(g, BATCH, LENGTH, WIDTH)]}


@PAIRS.add
def gqa_repeat_vs_grouped() -> Pair:
    g = seeded(33)
    ws = matrices(g, "wq", WIDTH, WIDTH) | matrices(g, "wk wv", 2 * HEAD_WIDTH, WIDTH)
    ws |= matrices(g, "wo", WIDTH, WIDTH)

    def repeated(m: Program, x: Tensor) -> Tensor:
        q, k, v = projected(m, tag("x", x))
        k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        scores = tag("scores", q @ k.transpose(-1, -2) / sqrt(HEAD_WIDTH))
        context = tag("ctx", tag("probs", torch.softmax(scores, -1)) @ v)
        return tag("y", F.linear(merge_heads(context), m.wo))

    def grouped(m: Program, x: Tensor) -> Tensor:
        q, k, v = projected(m, tag("x", x))
        context = tag("ctx", F.scaled_dot_product_attention(q, k, v, enable_gqa=True))
        return tag("y", F.linear(merge_heads(context), m.wo))

    return {
        "A": Program(repeated, ws),
        "B": Program(grouped, ws),
        "args": [normal(g, BATCH, LENGTH, WIDTH)],
    }


@PAIRS.add
def backward_mlp() -> Pair:
    g = seeded(34)
    ws = matrices(g, "w1 w2", WIDTH, WIDTH)

    def step(act: Activation) -> Callable[[Program, Tensor], Tensor]:
        def run(m: Program, x: Tensor) -> Tensor:
            tag("x", x)
            with torch.enable_grad():
                w1, w2 = (w.detach().requires_grad_() for w in (m.w1, m.w2))
                hidden = F.linear(x, w1)
                active = act(hidden)
                loss = F.linear(active, w2).square().mean()
                g1, g2 = torch.autograd.grad(loss, [w1, w2])
            tag("h", hidden.detach())
            tag("a", active.detach())
            tag("g2", g2)
            return tag("g1", g1)

        return run

    return {
        "A": Program(step(F.silu), ws),
        "B": Program(step(silu_by_hand), ws),
        "args": [normal(g, BATCH, LENGTH, WIDTH)],
    }


def softmax_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    scores = q @ k.transpose(-1, -2) / sqrt(HEAD_WIDTH)
    return torch.softmax(scores if mask is None else scores + mask, -1) @ v


@PAIRS.add
def backward_attention() -> Pair:
    g = seeded(35)
    ws = matrices(g, "wq wk wv wo", WIDTH, WIDTH)

    def step(attend: Attention) -> Callable[[Program, Tensor], Tensor]:
        def run(m: Program, x: Tensor) -> Tensor:
            tag("x", x)
            with torch.enable_grad():
                weights = [w.detach().requires_grad_() for w in (m.wq, m.wk, m.wv, m.wo)]
                q, k, v = (heads(F.linear(x, w)) for w in weights[:3])
                context = attend(q, k, v)
                loss = F.linear(merge_heads(context), weights[3]).square().mean()
                gradients = torch.autograd.grad(loss, weights)
            for name, gradient in zip(("gq", "gk", "gv", "go"), gradients, strict=True):
                tag(name, gradient)
            tag("ctx", context.detach())
            return gradients[0]

        return run

    return {
        "A": Program(step(softmax_attention), ws),
        "B": Program(step(F.scaled_dot_product_attention), ws),
        "args": [normal(g, BATCH, LENGTH, WIDTH)],
    }


@PAIRS.add
def bool_mask_vs_additive() -> Pair:
    """Three layers of the same weights under one causal mask."""
    g = seeded(36)
    ws = matrices(g, "wq wk wv wo", WIDTH, WIDTH)

    def layers(attend: Attention, m: Program, x: Tensor) -> Tensor:
        for i in range(3):
            q, k, v = (heads(F.linear(x, w)) for w in (m.wq, m.wk, m.wv))
            x = tag(f"r{i}", x + F.linear(merge_heads(attend(q, k, v)), m.wo))
        return x * 1.0

    def additive(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        mask = causal_mask(LENGTH)
        return layers(lambda q, k, v: softmax_attention(q, k, v, mask), m, x)

    def boolean(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        mask = torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
        return layers(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=mask), m, x)

    return {
        "A": Program(additive, ws),
        "B": Program(boolean, ws),
        "args": [normal(g, BATCH, LENGTH, WIDTH)],
    }
