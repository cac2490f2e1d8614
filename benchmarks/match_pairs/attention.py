"""Attention: how heads are grouped, contracted, windowed, compressed and normalised."""

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
    causal_mask,
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

BATCH, LENGTH, WIDTH, HEADS = 2, 24, 96, 6
HEAD_WIDTH = WIDTH // HEADS
SCALE = 1 / sqrt(HEAD_WIDTH)

PAIRS = Pairs()


def projected(w: Weights, x: Tensor, groups: int = HEADS, mark: str = "") -> tuple[Tensor, Tensor, Tensor]:
    """q by head, k and v by group of heads, labelled."""
    q = tag(f"q{mark}", split_heads(F.linear(x, w.wq), HEADS))
    k = tag(f"k{mark}", split_heads(F.linear(x, w.wk), groups))
    v = tag(f"v{mark}", split_heads(F.linear(x, w.wv), groups))
    return q, k, v


def attention_weights(*, seed: int, groups: int = HEADS) -> tuple[dict[str, Tensor], Tensor]:
    """wq, wk, wv, wo and an input."""
    g = seeded(seed)
    ws = matrices(g, "wq wo", WIDTH, WIDTH) | matrices(g, "wk wv", groups * HEAD_WIDTH, WIDTH)
    return ws, normal(g, BATCH, LENGTH, WIDTH)


@PAIRS.add
def gqa_interleave_vs_expand() -> Pair:
    groups = 2
    ws, x = attention_weights(seed=101, groups=groups)
    repeats = HEADS // groups

    def interleaved(heads: Tensor) -> Tensor:
        return heads.repeat_interleave(repeats, dim=1)

    def expanded(heads: Tensor) -> Tensor:
        shape = (BATCH, groups, repeats, LENGTH, HEAD_WIDTH)
        return heads[:, :, None].expand(shape).reshape(BATCH, HEADS, LENGTH, HEAD_WIDTH)

    def block(repeat: Callable[[Tensor], Tensor]) -> Callable[[Program, Tensor], Tensor]:
        def run(m: Program, x: Tensor) -> Tensor:
            q, k, v = projected(m, tag("x", x), groups)
            k, v = tag("k_all", repeat(k)), tag("v_all", repeat(v))
            scores = tag("scores", torch.matmul(q, k.transpose(2, 3)) * SCALE)
            probs = tag("probs", F.softmax(scores + causal_mask(LENGTH), dim=-1, dtype=torch.float32))
            context = tag("context", torch.matmul(probs, v))
            return tag("y", x + tag("out", F.linear(merge_heads(context), m.wo)))

        return run

    return {"A": Program(block(interleaved), ws), "B": Program(block(expanded), ws), "args": [x]}


@PAIRS.add
def gqa_sdpa_vs_grouped_einsum() -> Pair:
    groups = 3
    ws, x = attention_weights(seed=102, groups=groups)

    def one_operator(m: Program, x: Tensor) -> Tensor:
        q, k, v = projected(m, tag("x", x), groups)
        context = tag("context", F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True))
        return tag("y", x + tag("out", F.linear(merge_heads(context), m.wo)))

    def grouped(m: Program, x: Tensor) -> Tensor:
        q, k, v = projected(m, tag("x", x), groups)
        q = q.view(BATCH, groups, HEADS // groups, LENGTH, HEAD_WIDTH)
        scores = tag("scores", torch.einsum("bgrqd,bgkd->bgrqk", q * SCALE, k))
        future = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
        probs = tag("probs", torch.softmax(scores.masked_fill(future, MINUS_INFINITY), -1))
        context = tag("context", torch.einsum("bgrqk,bgkd->bgrqd", probs, v))
        mixed = context.reshape(BATCH, HEADS, LENGTH, HEAD_WIDTH)
        return tag("y", x + tag("out", F.linear(merge_heads(mixed), m.wo)))

    return {"A": Program(one_operator, ws), "B": Program(grouped, ws), "args": [x]}


@PAIRS.add
def einsum_vs_bmm() -> Pair:
    ws, x = attention_weights(seed=103)

    def einsum(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        wq, wk, wv = (w.view(HEADS, HEAD_WIDTH, WIDTH) for w in (m.wq, m.wk, m.wv))
        q = tag("q", torch.einsum("btm,hdm->bthd", x, wq))
        k = tag("k", torch.einsum("btm,hdm->bthd", x, wk))
        v = tag("v", torch.einsum("btm,hdm->bthd", x, wv))
        scores = tag("scores", torch.einsum("bqhd,bkhd->bhqk", q, k) / sqrt(HEAD_WIDTH))
        probs = tag("probs", torch.softmax(scores, -1))
        context = tag("context", torch.einsum("bhqk,bkhd->bqhd", probs, v))
        return tag("y", torch.einsum("bqhd,mhd->bqm", context, m.wo.view(WIDTH, HEADS, HEAD_WIDTH)))

    def flat(x: Tensor) -> Tensor:
        return split_heads(x, HEADS).reshape(BATCH * HEADS, LENGTH, HEAD_WIDTH)

    def bmm(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        q = tag("q", flat(F.linear(x, m.wq)))
        k = tag("k", flat(F.linear(x, m.wk)))
        v = tag("v", flat(F.linear(x, m.wv)))
        room = torch.empty(BATCH * HEADS, LENGTH, LENGTH)
        scores = tag("scores", torch.baddbmm(room, q, k.transpose(1, 2), beta=0.0, alpha=SCALE))
        probs = tag("probs", torch.softmax(scores, -1))
        context = tag("context", torch.bmm(probs, v))
        mixed = context.view(BATCH, HEADS, LENGTH, HEAD_WIDTH)
        return tag("y", F.linear(merge_heads(mixed), m.wo))

    return {"A": Program(einsum, ws), "B": Program(bmm, ws), "args": [x]}


@PAIRS.add
def whole_vs_online_softmax() -> Pair:
    """All keys at once against blocks of keys with a running maximum and sum, as flash attention does it."""
    ws, x = attention_weights(seed=104)
    block = 8

    def whole(m: Program, x: Tensor) -> Tensor:
        q, k, v = projected(m, tag("x", x))
        scores = tag("scores", q @ k.transpose(-1, -2) * SCALE)
        context = tag("context", tag("probs", torch.softmax(scores, -1)) @ v)
        return tag("y", x + tag("out", F.linear(merge_heads(context), m.wo)))

    def online(m: Program, x: Tensor) -> Tensor:
        q, k, v = projected(m, tag("x", x))
        largest = torch.full((BATCH, HEADS, LENGTH, 1), MINUS_INFINITY)
        total, mixed = torch.zeros_like(largest), torch.zeros_like(q)
        for number, start in enumerate(range(0, LENGTH, block)):
            here = slice(start, start + block)
            scores = tag(f"scores{number}", q @ k[:, :, here].transpose(-1, -2) * SCALE)
            new = torch.maximum(largest, scores.amax(-1, keepdim=True))
            shrink, weights = torch.exp(largest - new), torch.exp(scores - new)
            total = total * shrink + weights.sum(-1, keepdim=True)
            mixed = mixed * shrink + weights @ v[:, :, here]
            largest = new
        context = tag("context", mixed / total)
        return tag("y", x + tag("out", F.linear(merge_heads(context), m.wo)))

    return {
        "A": Program(whole, ws),
        "B": Program(online, ws),
        "args": [x],
        "parts": {"scores": ["scores0", "scores1", "scores2"]},
    }


@PAIRS.add
def softmax_by_hand() -> Pair:
    """torch.softmax against exp(s - logsumexp(s)) and a maximum, a difference and a quotient; two layers."""
    g = seeded(105)
    layers = [matrices(g, "wq wk wv wo", WIDTH, WIDTH) for _ in range(2)]
    x = normal(g, BATCH, LENGTH, WIDTH)

    def builtin(scores: Tensor) -> Tensor:
        return torch.softmax(scores, -1)

    def by_logarithm(scores: Tensor) -> Tensor:
        return torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True))

    def in_steps(scores: Tensor) -> Tensor:
        raised = (scores - scores.max(-1, keepdim=True).values).exp()
        return raised / raised.sum(-1, keepdim=True)

    def blocks(*softmaxes: Callable[[Tensor], Tensor]) -> Callable[[Program, Tensor], Tensor]:
        def run(m: Program, x: Tensor) -> Tensor:
            tag("x", x)
            for i, (w, softmax) in enumerate(zip(m.layers, softmaxes, strict=True)):
                q, k, v = projected(w, x, mark=str(i))
                scores = tag(f"scores{i}", q @ k.transpose(-1, -2) * SCALE + causal_mask(LENGTH))
                context = tag(f"context{i}", tag(f"probs{i}", softmax(scores)) @ v)
                x = tag(f"x{i}", x + F.linear(merge_heads(context), w.wo))
            return x

        return run

    return {
        "A": Program(blocks(builtin, builtin), {}, layers),
        "B": Program(blocks(by_logarithm, in_steps), {}, layers),
        "args": [x],
    }


@PAIRS.add
def torch_mha_vs_by_hand() -> Pair:
    """Cross-attention: PyTorch's own multi-head attention (time first) against projections and matmuls."""
    g = seeded(106)
    ws = {
        "packed": matrix(g, 3 * WIDTH, WIDTH),
        "packed_bias": offset(g, 3 * WIDTH),
        "wo": matrix(g, WIDTH, WIDTH),
        "bo": offset(g, WIDTH),
    }
    ws |= norm_weights(g, "norm", width=WIDTH)
    query, memory = normal(g, BATCH, LENGTH, WIDTH), normal(g, BATCH, 40, WIDTH)

    def builtin(m: Program, query: Tensor, memory: Tensor) -> Tensor:
        normed = tag("normed", F.layer_norm(tag("query", query), (WIDTH,), m.norm_gain, m.norm_offset))
        keys = tag("memory", memory).transpose(0, 1)
        out, probs = F.multi_head_attention_forward(
            normed.transpose(0, 1),
            keys,
            keys,
            WIDTH,
            HEADS,
            m.packed,
            m.packed_bias,
            None,
            None,
            False,
            0.0,
            m.wo,
            m.bo,
            need_weights=True,
            average_attn_weights=False,
        )
        assert probs is not None
        tag("probs", probs)
        return tag("y", query + tag("out", out).transpose(0, 1))

    def by_hand(m: Program, query: Tensor, memory: Tensor) -> Tensor:
        normed = tag("normed", F.layer_norm(tag("query", query), (WIDTH,), m.norm_gain, m.norm_offset))
        wq, wk, wv = m.packed.chunk(3)
        bq, bk, bv = m.packed_bias.chunk(3)
        q = tag("q", split_heads(F.linear(normed, wq, bq), HEADS))
        k = tag("k", split_heads(F.linear(tag("memory", memory), wk, bk), HEADS))
        v = tag("v", split_heads(F.linear(memory, wv, bv), HEADS))
        probs = tag("probs", torch.softmax(q @ k.transpose(-1, -2) * SCALE, -1))
        context = tag("context", probs @ v)
        return tag("y", query + tag("out", F.linear(merge_heads(context), m.wo, m.bo)))

    return {"A": Program(builtin, ws), "B": Program(by_hand, ws), "args": [query, memory]}


@PAIRS.add
def latent_decompressed_vs_absorbed() -> Pair:
    """Multi-head latent attention: keys and values expanded from the latent, or the expansion absorbed by q
    and the output, so that attention happens in the latent space."""
    g = seeded(107)
    rank = 32
    ws = {
        "down": matrix(g, rank, WIDTH),
        "wq": matrix(g, WIDTH, WIDTH),
        "up_k": matrix(g, HEADS, HEAD_WIDTH, rank),
        "up_v": matrix(g, HEADS, HEAD_WIDTH, rank),
        "wo": matrix(g, WIDTH, WIDTH),
    }
    x = normal(g, BATCH, LENGTH, WIDTH)

    def decompressed(m: Program, x: Tensor) -> Tensor:
        latent = tag("latent", F.linear(tag("x", x), m.down))
        q = tag("q", split_heads(F.linear(x, m.wq), HEADS))
        k = tag("k", split_heads(F.linear(latent, m.up_k.flatten(0, 1)), HEADS))
        v = tag("v", split_heads(F.linear(latent, m.up_v.flatten(0, 1)), HEADS))
        probs = tag("probs", torch.softmax(tag("scores", q @ k.transpose(-1, -2) * SCALE), -1))
        context = tag("context", probs @ v)
        return tag("y", x + tag("out", F.linear(merge_heads(context), m.wo)))

    def absorbed(m: Program, x: Tensor) -> Tensor:
        latent = tag("latent", F.linear(tag("x", x), m.down))
        q = tag("q", split_heads(F.linear(x, m.wq), HEADS))
        narrow = tag("q_latent", torch.matmul(q, m.up_k))
        scores = tag("scores", narrow @ latent[:, None].transpose(-1, -2) * SCALE)
        probs = tag("probs", torch.softmax(scores, -1))
        mixed = tag("context_latent", probs @ latent[:, None])
        context = tag("context", torch.matmul(mixed, m.up_v.transpose(-1, -2)))
        return tag("y", x + tag("out", F.linear(merge_heads(context), m.wo)))

    return {"A": Program(decompressed, ws), "B": Program(absorbed, ws), "args": [x]}


@PAIRS.add
def windows_cut_vs_masked() -> Pair:
    """Swin's windows: the image cut into windows which attend alone, or one attention under a block mask."""
    g = seeded(108)
    side, window = 8, 4
    ws = matrices(g, "wq wk wv wo", WIDTH, WIDTH)
    x = normal(g, BATCH, side * side, WIDTH)
    count = (side // window) ** 2

    def cut(x: Tensor) -> Tensor:
        image = x.view(BATCH, side // window, window, side // window, window, WIDTH)
        return image.permute(0, 1, 3, 2, 4, 5).reshape(BATCH * count, window * window, WIDTH)

    def pasted(windows: Tensor) -> Tensor:
        image = windows.view(BATCH, side // window, side // window, window, window, WIDTH)
        return image.permute(0, 1, 3, 2, 4, 5).reshape(BATCH, side * side, WIDTH)

    def windowed(m: Program, x: Tensor) -> Tensor:
        q, k, v = projected(m, cut(tag("x", x)))
        probs = tag("probs", torch.softmax(q @ k.transpose(-1, -2) * SCALE, -1))
        context = tag("context", probs @ v)
        out = tag("out", F.linear(merge_heads(context), m.wo))
        return tag("y", x + pasted(out))

    def masked(m: Program, x: Tensor) -> Tensor:
        q, k, v = projected(m, tag("x", x))
        position = torch.arange(side * side)
        number = position // side // window * (side // window) + position % side // window
        together = number[:, None] == number[None]
        context = tag("context", F.scaled_dot_product_attention(q, k, v, attn_mask=together))
        return tag("y", x + tag("out", F.linear(merge_heads(context), m.wo)))

    return {"A": Program(windowed, ws), "B": Program(masked, ws), "args": [x]}


@PAIRS.add
def recurrent_vs_parallel_retention() -> Pair:
    """Linear attention with decay: a state updated token by token, or a lower triangle of decays."""
    ws, x = attention_weights(seed=109)
    ws |= {"gate": matrix(seeded(110), WIDTH, WIDTH)}
    decay = 1 - torch.pow(2.0, -2 - torch.arange(HEADS))

    def finish(m: Program, x: Tensor, mixed: Tensor) -> Tensor:
        gate = tag("gate", F.silu(F.linear(x, m.gate)))
        return tag("y", x + F.linear(tag("gated", gate * merge_heads(mixed)), m.wo))

    def parallel(m: Program, x: Tensor) -> Tensor:
        q, k, v = projected(m, tag("x", x))
        position = torch.arange(LENGTH)
        age = (position[:, None] - position[None]).clamp(min=0)
        weight = (decay[:, None, None] ** age).tril()
        mixed = tag("mixed", (q @ k.transpose(-1, -2) * SCALE * weight) @ v)
        return finish(m, x, mixed)

    def recurrent(m: Program, x: Tensor) -> Tensor:
        q, k, v = projected(m, tag("x", x))
        state = torch.zeros(BATCH, HEADS, HEAD_WIDTH, HEAD_WIDTH)
        steps: list[Tensor] = []
        for t in range(LENGTH):
            state = state * decay[:, None, None] + k[:, :, t, :, None] * v[:, :, t, None, :]
            steps.append((q[:, :, t, None] @ state).squeeze(2) * SCALE)
        return finish(m, x, tag("mixed", torch.stack(steps, dim=2)))

    return {"A": Program(parallel, ws), "B": Program(recurrent, ws), "args": [x]}
