"""Decoding with a cache: grown, preallocated, paged or a ring; a token at a time or several at once."""

from collections.abc import Callable
from math import sqrt

import torch
import torch.nn.functional as F
from match_pairs.convention import (
    MINUS_INFINITY,
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

BATCH, WIDTH, HEADS = 16, 64, 4
HEAD_WIDTH = WIDTH // HEADS
PROMPT, STEPS, ROOM = 6, 2, 16

PAIRS = Pairs()


def layer_weights(g: Generator) -> dict[str, Tensor]:
    return matrices(g, "wq wk wv wo", WIDTH, WIDTH) | {"norm": gain(g, WIDTH)}


def projected(w: Weights, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    normed = F.rms_norm(x, (WIDTH,), w.norm, 1e-6)
    q, k, v = (split_heads(F.linear(normed, p), HEADS) for p in (w.wq, w.wk, w.wv))
    return q, k, v


def attended(q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """The last positions of ``keys`` are those of ``q``."""
    new, total = q.shape[2], keys.shape[2]
    scores = q @ keys.mT / sqrt(HEAD_WIDTH)
    if new > 1:
        future = torch.ones(new, total, dtype=torch.bool).triu(total - new + 1)
        scores = scores.masked_fill(future, MINUS_INFINITY)
    return torch.softmax(scores, -1) @ values


Remember = Callable[[int, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Store the new k and v of a layer; return all keys and values so far."""


def steps(m: Program, x: Tensor, remember: Remember) -> Tensor:
    """The prompt, then ``STEPS`` tokens one at a time, each made of the output before it."""
    tag("x", x)
    for step in range(STEPS + 1):
        for i, w in enumerate(m.layers):
            q, k, v = projected(w, x)
            keys, values = remember(i, k, v)
            keys, values = tag(f"keys{i}_{step}", keys), tag(f"values{i}_{step}", values)
            context = tag(f"context{i}_{step}", attended(q, keys, values))
            x = tag(f"x{i}_{step}", x + F.linear(merge_heads(context), w.wo))
        logits = tag(f"logits_{step}", F.linear(x[:, -1], m.head))
        x = tag(f"next_{step}", F.embedding(logits.argmax(-1, keepdim=True), m.table))
    return x


def growing() -> Remember:
    caches: dict[int, tuple[Tensor, Tensor]] = {}

    def remember(layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        if layer in caches:
            k, v = torch.cat([caches[layer][0], k], dim=2), torch.cat([caches[layer][1], v], dim=2)
        caches[layer] = k, v
        return k, v

    return remember


def preallocated(*, by_index: bool) -> Remember:
    """Room for all layers in two tensors, written by slice assignment or by index."""
    all_keys, all_values = (torch.zeros(2, BATCH, HEADS, ROOM, HEAD_WIDTH) for _ in range(2))
    filled = [0, 0]

    def remember(layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        start, end = filled[layer], filled[layer] + k.shape[2]
        filled[layer] = end
        if by_index:
            places = torch.arange(start, end)
            all_keys[layer].index_copy_(2, places, k)
            all_values[layer].index_copy_(2, places, v)
        else:
            all_keys[layer, :, :, start:end] = k
            all_values[layer, :, :, start:end] = v
        return all_keys[layer, :, :, :end], all_values[layer, :, :, :end]

    return remember


def paged(*, block: int = 4) -> Remember:
    """Blocks of one pool for all prompts, scattered; a table names those of each."""
    order = torch.randperm(BATCH * ROOM // block, generator=seeded(0))
    table = order.view(BATCH, ROOM // block)
    pools = torch.zeros(2, 2, BATCH * ROOM // block * block, HEADS, HEAD_WIDTH)
    filled = [0, 0]

    def remember(layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        start, end = filled[layer], filled[layer] + k.shape[2]
        filled[layer] = end
        positions = torch.arange(end)
        slots = table[:, positions // block] * block + positions % block
        for pool, new in zip(pools[layer], (k, v), strict=True):
            pool[slots[:, start:].flatten()] = new.transpose(1, 2).flatten(0, 1)
        keys, values = (pool[slots].transpose(1, 2) for pool in pools[layer])
        return keys, values

    return remember


def decoding_pair(seed: int, baseline: Callable[[], Remember], candidate: Callable[[], Remember]) -> Pair:
    g = seeded(seed)
    layers = [layer_weights(g) for _ in range(2)]
    ws = {"head": matrix(g, 150, WIDTH), "table": normal(g, 150, WIDTH)}

    def with_cache(make: Callable[[], Remember]) -> Callable[[Program, Tensor], Tensor]:
        def run(m: Program, x: Tensor) -> Tensor:
            return steps(m, x, make())

        return run

    return {
        "A": Program(with_cache(baseline), ws, layers),
        "B": Program(with_cache(candidate), ws, layers),
        "args": [normal(g, BATCH, PROMPT, WIDTH)],
    }


@PAIRS.add
def cache_grown_vs_sliced() -> Pair:
    return decoding_pair(301, growing, lambda: preallocated(by_index=False))


@PAIRS.add
def cache_grown_vs_indexed() -> Pair:
    return decoding_pair(302, growing, lambda: preallocated(by_index=True))


@PAIRS.add
def cache_grown_vs_paged() -> Pair:
    return decoding_pair(303, growing, paged)


@PAIRS.add
def window_rolled_vs_ring() -> Pair:
    """The last eight keys: the oldest dropped as one is appended, or overwritten where it lies."""
    g = seeded(304)
    window, tokens = 8, 4
    ws = layer_weights(g) | {name: normal(g, BATCH, HEADS, window, HEAD_WIDTH) for name in ("old_k", "old_v")}
    x = normal(g, BATCH, tokens, WIDTH)

    def decode(m: Program, x: Tensor, remember: Remember) -> Tensor:
        tag("x", x)
        outputs: list[Tensor] = []
        for t in range(tokens):
            q, k, v = projected(m, x[:, t : t + 1])
            keys, values = remember(t, tag(f"k{t}", k), tag(f"v{t}", v))
            context = attended(q, tag(f"keys{t}", keys), tag(f"values{t}", values))
            outputs.append(F.linear(merge_heads(tag(f"context{t}", context)), m.wo))
        return tag("y", x + torch.cat(outputs, dim=1))

    def rolled(m: Program, x: Tensor) -> Tensor:
        kept = [m.old_k, m.old_v]

        def remember(token: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
            kept[:] = [torch.cat([old[:, :, 1:], new], 2) for old, new in zip(kept, (k, v), strict=True)]
            return kept[0], kept[1]

        return decode(m, x, remember)

    def ring(m: Program, x: Tensor) -> Tensor:
        keys, values = m.old_k.clone(), m.old_v.clone()

        def remember(token: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
            slot = token % window
            keys[:, :, slot : slot + 1].copy_(k)
            values[:, :, slot : slot + 1].copy_(v)
            return keys, values

        return decode(m, x, remember)

    return {"A": Program(rolled, ws), "B": Program(ring, ws), "args": [x]}


@PAIRS.add
def verified_at_once_vs_one_by_one() -> Pair:
    """Speculative decoding's check of drafted tokens: all in one step, or one step each."""
    g = seeded(305)
    drafted = 4
    layers = [
        layer_weights(g) | {name: normal(g, BATCH, HEADS, PROMPT, HEAD_WIDTH) for name in ("old_k", "old_v")}
        for _ in range(2)
    ]
    ws = {"head": matrix(g, 150, WIDTH)}
    x = normal(g, BATCH, drafted, WIDTH)

    def forward(m: Program, x: Tensor, remember: Remember, mark: str) -> Tensor:
        for i, w in enumerate(m.layers):
            q, k, v = projected(w, x)
            keys, values = remember(i, tag(f"k{i}{mark}", k), tag(f"v{i}{mark}", v))
            context = tag(f"context{i}{mark}", attended(tag(f"q{i}{mark}", q), keys, values))
            x = tag(f"x{i}{mark}", x + F.linear(merge_heads(context), w.wo))
        return tag(f"logits{mark}", F.linear(x, m.head))

    def at_once(m: Program, x: Tensor) -> Tensor:
        def remember(layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
            w = m.layers[layer]
            keys, values = torch.cat([w.old_k, k], 2), torch.cat([w.old_v, v], 2)
            return tag(f"keys{layer}", keys), tag(f"values{layer}", values)

        logits = forward(m, tag("x", x), remember, "")
        return tag("logp", torch.log_softmax(logits, -1))

    def one_by_one(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        kept = [(w.old_k, w.old_v) for w in m.layers]

        def remember(layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
            keys, values = kept[layer]
            kept[layer] = torch.cat([keys, k], 2), torch.cat([values, v], 2)
            return kept[layer]

        logits = [forward(m, x[:, t : t + 1], remember, f"_{t}") for t in range(drafted)]
        for layer, (keys, values) in enumerate(kept):
            tag(f"keys{layer}", keys)
            tag(f"values{layer}", values)
        return tag("logp", torch.log_softmax(tag("logits", torch.cat(logits, dim=1)), -1))

    names = ["logits", *(f"{name}{layer}" for layer in range(2) for name in ("q", "k", "v", "context", "x"))]
    return {
        "A": Program(at_once, ws, layers),
        "B": Program(one_by_one, ws, layers),
        "args": [x],
        "parts": {name: [f"{name}_{t}" for t in range(drafted)] for name in names},
    }
