"""One device or two: weights cut by column, row, head and vocabulary; and two branches as one batch."""

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
    merge_heads,
    norm_weights,
    normal,
    offset,
    seeded,
    split_heads,
    tag,
)
from torch import Tensor

BATCH, LENGTH, WIDTH, INNER, HEADS, VOCABULARY = 2, 24, 64, 128, 4, 160
SHARDS = range(2)

PAIRS = Pairs()


@PAIRS.add
def mlp_whole_vs_sharded() -> Pair:
    """Columns of the first weight, rows of the second; partial results are summed."""
    g = seeded(1001)
    ws = {"up": matrix(g, INNER, WIDTH), "up_bias": offset(g, INNER)}
    ws |= {"down": matrix(g, WIDTH, INNER), "down_bias": offset(g, WIDTH), "norm": gain(g, WIDTH)}
    shards = [
        {
            "up": ws["up"].chunk(2)[i].clone(),
            "up_bias": ws["up_bias"].chunk(2)[i].clone(),
            "down": ws["down"].chunk(2, dim=1)[i].contiguous(),
        }
        for i in SHARDS
    ]

    def whole(m: Program, x: Tensor) -> Tensor:
        normed = tag("normed", F.rms_norm(tag("x", x), (WIDTH,), m.norm, 1e-6))
        hidden = tag("hidden", F.gelu(tag("up", F.linear(normed, m.up, m.up_bias))))
        return tag("y", x + tag("down", F.linear(hidden, m.down, m.down_bias)))

    def sharded(m: Program, x: Tensor) -> Tensor:
        normed = tag("normed", F.rms_norm(tag("x", x), (WIDTH,), m.norm, 1e-6))
        partial: list[Tensor] = []
        for i, w in enumerate(m.layers):
            up = tag(f"up{i}", F.linear(normed, w.up, w.up_bias))
            partial.append(tag(f"partial{i}", F.linear(tag(f"hidden{i}", F.gelu(up)), w.down)))
        return tag("y", x + tag("down", partial[0] + partial[1] + m.down_bias))

    kept = {"norm": ws["norm"], "down_bias": ws["down_bias"]}
    return {
        "A": Program(whole, ws),
        "B": Program(sharded, kept, shards),
        "args": [normal(g, BATCH, LENGTH, WIDTH)],
        "parts": {"up": ["up0", "up1"], "hidden": ["hidden0", "hidden1"]},
    }


def model_whole(m: Program, tokens: Tensor) -> Tensor:
    x = tag("x", F.embedding(tokens, m.table))
    normed = tag("normed", F.rms_norm(x, (WIDTH,), m.norm, 1e-6))
    q = tag("q", split_heads(F.linear(normed, m.wq), HEADS))
    k = tag("k", split_heads(F.linear(normed, m.wk), HEADS))
    v = tag("v", split_heads(F.linear(normed, m.wv), HEADS))
    context = tag("context", F.scaled_dot_product_attention(q, k, v, is_causal=True))
    y = tag("y", x + tag("out", F.linear(merge_heads(context), m.wo)))
    return tag("logits", F.linear(y, m.head))


def looked_up(table: Tensor, tokens: Tensor, start: int) -> Tensor:
    """Rows of a table that starts at token ``start``; zeros for what it does not hold."""
    elsewhere = (tokens < start) | (tokens >= start + VOCABULARY // 2)
    rows = F.embedding((tokens - start).masked_fill(elsewhere, 0), table)
    rows[elsewhere] = 0.0
    return rows


def model_sharded(m: Program, tokens: Tensor) -> Tensor:
    lookups = [looked_up(w.table, tokens, i * VOCABULARY // 2) for i, w in enumerate(m.layers)]
    x = tag("x", lookups[0] + lookups[1])
    normed = tag("normed", F.rms_norm(x, (WIDTH,), m.norm, 1e-6))
    out = torch.zeros_like(x)
    for i, w in enumerate(m.layers):
        q = tag(f"q{i}", split_heads(F.linear(normed, w.wq), HEADS // 2))
        k = tag(f"k{i}", split_heads(F.linear(normed, w.wk), HEADS // 2))
        v = tag(f"v{i}", split_heads(F.linear(normed, w.wv), HEADS // 2))
        context = tag(f"context{i}", F.scaled_dot_product_attention(q, k, v, is_causal=True))
        out = out + F.linear(merge_heads(context), w.wo)
    y = tag("y", x + tag("out", out))
    return tag(
        "logits", torch.cat([tag(f"logits{i}", F.linear(y, w.head)) for i, w in enumerate(m.layers)], -1)
    )


@PAIRS.add
def model_whole_vs_sharded() -> Pair:
    """Embedding and head cut by vocabulary, attention by head; each lookup masks what another shard holds."""
    g = seeded(1002)
    ws = {"table": normal(g, VOCABULARY, WIDTH), "norm": gain(g, WIDTH), "head": matrix(g, VOCABULARY, WIDTH)}
    ws |= matrices(g, "wq wk wv wo", WIDTH, WIDTH)
    by_row = ("table", "head", "wq", "wk", "wv")
    shards = [
        {name: ws[name].chunk(2)[i].clone() for name in by_row}
        | {"wo": ws["wo"].chunk(2, dim=1)[i].contiguous()}
        for i in SHARDS
    ]
    tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH), generator=g)

    return {
        "A": Program(model_whole, ws),
        "B": Program(model_sharded, {"norm": ws["norm"]}, shards),
        "args": [tokens],
        "parts": {name: [f"{name}0", f"{name}1"] for name in ("q", "k", "v", "context", "logits")},
    }


def tower(m: Program, x: Tensor, norm: Callable[[Tensor, Tensor, Tensor], Tensor], mark: str) -> Tensor:
    normed = tag(f"normed{mark}", norm(x, m.norm_gain, m.norm_offset))
    hidden = tag(f"hidden{mark}", F.gelu(tag(f"up{mark}", F.linear(normed, m.up))))
    x = tag(f"y{mark}", x + F.linear(hidden, m.down))
    return tag(f"pooled{mark}", x.mean(dim=1))


def tower_weights(seed: int) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    g = seeded(seed)
    ws = norm_weights(g, "norm", width=WIDTH) | {
        "up": matrix(g, INNER, WIDTH),
        "down": matrix(g, WIDTH, INNER),
    }
    return ws, normal(g, 12, LENGTH, WIDTH), normal(g, 12, LENGTH, WIDTH)


def fused_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, (WIDTH,), weight, bias)


@PAIRS.add
def two_towers() -> Pair:
    """One set of weights on queries and on documents, then cosines; norms by one operator or by hand."""
    ws, queries, documents = tower_weights(1003)

    def fused(m: Program, queries: Tensor, documents: Tensor) -> Tensor:
        one = tower(m, tag("queries", queries), fused_norm, "_query")
        other = tower(m, tag("documents", documents), fused_norm, "_document")
        one, other = tag("unit_query", F.normalize(one)), tag("unit_document", F.normalize(other))
        return tag("cosines", one @ other.t())

    def by_hand(m: Program, queries: Tensor, documents: Tensor) -> Tensor:
        other = tower(m, tag("documents", documents), layer_norm_by_hand, "_document")
        one = tower(m, tag("queries", queries), layer_norm_by_hand, "_query")
        one = tag("unit_query", one / one.norm(dim=-1, keepdim=True))
        other = tag("unit_document", other * torch.rsqrt(other.square().sum(-1, keepdim=True)))
        return tag("cosines", torch.einsum("qd,kd->qk", one, other))

    return {"A": Program(fused, ws), "B": Program(by_hand, ws), "args": [queries, documents]}


@PAIRS.add
def towers_apart_vs_batched() -> Pair:
    """The same weights on two inputs: two calls, or one call over both."""
    ws, queries, documents = tower_weights(1004)

    def apart(m: Program, queries: Tensor, documents: Tensor) -> Tensor:
        one = tower(m, tag("queries", queries), fused_norm, "_query")
        other = tower(m, tag("documents", documents), fused_norm, "_document")
        return tag("products", one @ other.t())

    def batched(m: Program, queries: Tensor, documents: Tensor) -> Tensor:
        both = torch.cat([tag("queries", queries), tag("documents", documents)])
        one, other = tower(m, tag("both", both), fused_norm, "").chunk(2)
        return tag("products", tag("pooled_query", one) @ tag("pooled_document", other).t())

    names = ("normed", "up", "hidden", "y", "pooled")
    return {
        "A": Program(apart, ws),
        "B": Program(batched, ws),
        "args": [queries, documents],
        "parts": {name: [f"{name}_query", f"{name}_document"] for name in names}
        | {"both": ["queries", "documents"]},
    }


@PAIRS.add
def guidance_two_passes_vs_one() -> Pair:
    """A denoiser with and without its condition, combined: two passes, or one over both; two steps."""
    g = seeded(1005)
    ws = norm_weights(g, "norm", width=WIDTH) | {
        "up": matrix(g, INNER, WIDTH),
        "down": matrix(g, WIDTH, INNER),
    }
    ws |= {"project": matrix(g, WIDTH, WIDTH), "nothing": normal(g, 1, WIDTH)}
    x, condition = normal(g, 4, LENGTH, WIDTH), normal(g, 4, WIDTH)
    strength = 3.0

    def denoise(m: Program, x: Tensor, condition: Tensor, mark: str) -> Tensor:
        h = tag(f"shifted{mark}", x + F.linear(condition, m.project)[:, None])
        normed = tag(f"normed{mark}", fused_norm(h, m.norm_gain, m.norm_offset))
        return F.linear(tag(f"hidden{mark}", F.silu(F.linear(normed, m.up))), m.down)

    def two(m: Program, x: Tensor, condition: Tensor) -> Tensor:
        tag("x", x)
        for step in range(2):
            with_it = tag(f"noise_with{step}", denoise(m, x, condition, f"_with{step}"))
            nothing = m.nothing.expand(x.shape[0], -1)
            without = tag(f"noise_without{step}", denoise(m, x, nothing, f"_without{step}"))
            x = tag(f"x{step}", x - 0.3 * (without + strength * (with_it - without)))
        return x

    def one(m: Program, x: Tensor, condition: Tensor) -> Tensor:
        tag("x", x)
        both = torch.cat([m.nothing.repeat(x.shape[0], 1), condition])
        for step in range(2):
            without, with_it = denoise(m, torch.cat([x, x]), both, str(step)).chunk(2)
            tag(f"noise_with{step}", with_it)
            tag(f"noise_without{step}", without)
            x = tag(f"x{step}", x - 0.3 * torch.lerp(without, with_it, strength))
        return x

    return {
        "A": Program(two, ws),
        "B": Program(one, ws),
        "args": [x, condition],
        "parts": {
            f"{name}{step}": [f"{name}_without{step}", f"{name}_with{step}"]
            for step in range(2)
            for name in ("shifted", "normed", "hidden")
        },
    }
