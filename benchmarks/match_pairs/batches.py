"""Prompts of different lengths in one batch: padded to the longest, or packed one after the other."""

from math import sqrt

import torch
import torch.nn.functional as F
from match_pairs.convention import (
    Pair,
    Pairs,
    Program,
    Weights,
    gain,
    matrices,
    matrix,
    merge_heads,
    normal,
    seeded,
    split_heads,
    tag,
)
from torch import Generator, Tensor

WIDTH, HEADS = 64, 4
HEAD_WIDTH = WIDTH // HEADS
LENGTHS = (32, 21, 11, 27)
LONGEST = max(LENGTHS)

PAIRS = Pairs()


def layer_weights(g: Generator) -> dict[str, Tensor]:
    return matrices(g, "wq wk wv wo", WIDTH, WIDTH) | {"norm": gain(g, WIDTH)}


def norm(x: Tensor, weight: Tensor) -> Tensor:
    return F.rms_norm(x, (WIDTH,), weight, 1e-6)


def is_token() -> Tensor:
    """[B, T]"""
    return torch.arange(LONGEST)[None] < torch.tensor(LENGTHS)[:, None]


def token_rows() -> Tensor:
    """Numbers of the rows of the padded batch, flattened, that hold a token."""
    return is_token().flatten().nonzero().squeeze(1)


def padded_context(w: Weights, normed: Tensor) -> Tensor:
    """Attention [B, H, T, D / H] under the causal mask and that of the padding."""
    q, k, v = (split_heads(F.linear(normed, p), HEADS) for p in (w.wq, w.wk, w.wv))
    seen = is_token()[:, None, None] & torch.ones(LONGEST, LONGEST, dtype=torch.bool).tril()
    scores = (q @ k.mT / sqrt(HEAD_WIDTH)).masked_fill(~seen, torch.finfo(q.dtype).min)
    return torch.softmax(scores, -1) @ v


def packed_context(w: Weights, normed: Tensor) -> Tensor:
    """Attention [H, sum of lengths, D / H] under a mask of one block a prompt."""
    q, k, v = (F.linear(normed, p).view(1, -1, HEADS, HEAD_WIDTH).transpose(1, 2) for p in (w.wq, w.wk, w.wv))
    prompt = torch.repeat_interleave(torch.arange(len(LENGTHS)), torch.tensor(LENGTHS))
    seen = (prompt[:, None] == prompt[None]).tril()
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)[0]


@PAIRS.add
def prompts_padded_vs_packed() -> Pair:
    """The head reads a mix of both layers' tokens; only there do the sides hold one value."""
    g = seeded(221)
    layers = [layer_weights(g) for _ in range(2)]
    ws = {"table": normal(g, 200, WIDTH), "head": matrix(g, 120, WIDTH), "shares": torch.tensor([0.3, 0.7])}
    tokens = torch.randint(1, 200, (len(LENGTHS), LONGEST), generator=g).masked_fill(~is_token(), 0)

    def padded(m: Program, tokens: Tensor) -> Tensor:
        x = tag("embedded_padded", F.embedding(tokens, m.table))
        rows, mixed = token_rows(), torch.zeros(sum(LENGTHS), WIDTH)
        for i, w in enumerate(m.layers):
            normed = tag(f"normed_padded{i}", norm(x, w.norm))
            context = tag(f"context_padded{i}", padded_context(w, normed))
            x = tag(f"x_padded{i}", x + F.linear(merge_heads(context), w.wo))
            mixed = mixed + m.shares[i] * tag(f"x{i}", x.flatten(0, 1).index_select(0, rows))
        return tag("logits", F.linear(tag("mixed", mixed), m.head))

    def packed(m: Program, tokens: Tensor) -> Tensor:
        x = tag("embedded", F.embedding(tokens.flatten()[token_rows()], m.table))
        kept: list[Tensor] = []
        for i, w in enumerate(m.layers):
            context = tag(f"context{i}", packed_context(w, tag(f"normed{i}", norm(x, w.norm))))
            x = tag(f"x{i}", x + F.linear(context.transpose(0, 1).reshape(-1, WIDTH), w.wo))
            kept.append(x)
        mixed = tag("mixed", torch.einsum("l,ltd->td", m.shares, torch.stack(kept)))
        return tag("logits", F.linear(mixed, m.head))

    return {"A": Program(padded, ws, layers), "B": Program(packed, ws, layers), "args": [tokens]}


@PAIRS.add
def attention_unpadded_inside() -> Pair:
    """Padded states on both sides; one masks, the other takes the padding out around attention alone."""
    g = seeded(222)
    layers = [layer_weights(g) for _ in range(2)]
    x = normal(g, len(LENGTHS), LONGEST, WIDTH)

    def masked(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        for i, w in enumerate(m.layers):
            context = padded_context(w, tag(f"normed{i}", norm(x, w.norm)))
            context = tag(f"context{i}", merge_heads(context) * is_token()[:, :, None])
            x = tag(f"x{i}", x + tag(f"out{i}", F.linear(context, w.wo)))
        return x

    def ragged(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention over rows [sum of lengths, D], one prompt after the other."""
        prompts = zip(*(rows.view(-1, HEADS, HEAD_WIDTH).split(LENGTHS) for rows in (q, k, v)), strict=True)
        contexts = [
            F.scaled_dot_product_attention(*(part.transpose(0, 1) for part in prompt), is_causal=True)
            for prompt in prompts
        ]
        return torch.cat([context.transpose(0, 1) for context in contexts]).flatten(1)

    def unpadded(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        rows = token_rows()
        for i, w in enumerate(m.layers):
            normed = tag(f"normed{i}", norm(x, w.norm))
            q, k, v = (F.linear(normed, p).flatten(0, 1).index_select(0, rows) for p in (w.wq, w.wk, w.wv))
            context = torch.zeros(len(LENGTHS) * LONGEST, WIDTH)
            context[rows] = ragged(q, k, v)
            context = tag(f"context{i}", context.view(x.shape))
            x = tag(f"x{i}", x + tag(f"out{i}", F.linear(context, w.wo)))
        return x

    return {"A": Program(masked, {}, layers), "B": Program(unpadded, {}, layers), "args": [x]}
