"""Whole small models, as two frameworks would write them."""

from math import pi, sqrt

import torch
import torch.nn.functional as F
from match_pairs.convention import (
    Pair,
    Pairs,
    Program,
    Weights,
    causal_mask,
    gain,
    layer_norm_by_hand,
    matrices,
    matrix,
    merge_heads,
    norm_weights,
    normal,
    offset,
    rms_norm_by_hand,
    seeded,
    split_heads,
    tag,
)
from torch import Generator, Tensor, nn

BATCH, LENGTH, WIDTH, INNER, HEADS, VOCABULARY = 2, 24, 64, 160, 4, 150
HEAD_WIDTH = WIDTH // HEADS

PAIRS = Pairs()


def gpt2_layer(g: Generator) -> dict[str, Tensor]:
    ws = norm_weights(g, "one", "two", width=WIDTH) | matrices(g, "wq wk wv wo", WIDTH, WIDTH)
    ws |= {"bq": offset(g, WIDTH), "bk": offset(g, WIDTH), "bv": offset(g, WIDTH), "bo": offset(g, WIDTH)}
    ws |= {"up": matrix(g, 4 * WIDTH, WIDTH), "up_bias": offset(g, 4 * WIDTH)}
    return ws | {"down": matrix(g, WIDTH, 4 * WIDTH), "down_bias": offset(g, WIDTH)}


def gpt2_fused(layer: dict[str, Tensor]) -> dict[str, Tensor]:
    """Weights [in, out], as GPT-2's checkpoints have them, with q, k and v in one."""
    norms = {name: value for name, value in layer.items() if name.startswith(("one", "two"))}
    return norms | {
        "qkv": torch.cat([layer["wq"], layer["wk"], layer["wv"]]).t().contiguous(),
        "qkv_bias": torch.cat([layer["bq"], layer["bk"], layer["bv"]]),
        **{name: layer[name].t().contiguous() for name in ("wo", "up", "down")},
        **{name: layer[name] for name in ("bo", "up_bias", "down_bias")},
    }


def gelu_by_hand(x: Tensor) -> Tensor:
    return 0.5 * x * (1.0 + torch.tanh(sqrt(2.0 / pi) * (x + 0.044715 * torch.pow(x, 3.0))))


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],), weight, bias, 1e-5)


def conv1d(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.addmm(bias, x.view(-1, x.shape[-1]), weight).view(*x.shape[:-1], weight.shape[1])


def gpt2_of_conv1d(m: Program, tokens: Tensor) -> Tensor:
    x = tag("x", F.embedding(tokens, m.table) + F.embedding(torch.arange(LENGTH)[None], m.places))
    for i, w in enumerate(m.layers):
        normed = tag(f"one{i}", layer_norm(x, w.one_gain, w.one_offset))
        qkv = tag(f"qkv{i}", conv1d(normed, w.qkv, w.qkv_bias)).split(WIDTH, dim=2)
        q, k, v = (split_heads(part, HEADS) for part in qkv)
        q, k, v = tag(f"q{i}", q), tag(f"k{i}", k), tag(f"v{i}", v)
        scores = torch.matmul(q, k.transpose(-1, -2)) / torch.full([], HEAD_WIDTH**0.5)
        future = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
        probs = torch.softmax(torch.where(future, torch.finfo(x.dtype).min, scores), dim=-1)
        context = tag(f"context{i}", torch.matmul(probs, v))
        x = tag(f"mid{i}", conv1d(merge_heads(context), w.wo, w.bo) + x)
        normed = tag(f"two{i}", layer_norm(x, w.two_gain, w.two_offset))
        hidden = tag(f"hidden{i}", gelu_by_hand(tag(f"up{i}", conv1d(normed, w.up, w.up_bias))))
        x = tag(f"x{i}", x + conv1d(hidden, w.down, w.down_bias))
    final = tag("final", layer_norm(x, m.final_gain, m.final_offset))
    return tag("logits", F.linear(final, m.table))


def gpt2_of_linear(m: Program, tokens: Tensor) -> Tensor:
    x = tag("x", F.embedding(tokens, m.table) + m.places[:LENGTH])
    for i, w in enumerate(m.layers):
        normed = tag(f"one{i}", layer_norm_by_hand(x, w.one_gain, w.one_offset))
        q = tag(f"q{i}", split_heads(F.linear(normed, w.wq, w.bq), HEADS))
        k = tag(f"k{i}", split_heads(F.linear(normed, w.wk, w.bk), HEADS))
        v = tag(f"v{i}", split_heads(F.linear(normed, w.wv, w.bv), HEADS))
        context = tag(f"context{i}", F.scaled_dot_product_attention(q, k, v, is_causal=True))
        x = tag(f"mid{i}", x + F.linear(merge_heads(context), w.wo, w.bo))
        normed = tag(f"two{i}", layer_norm_by_hand(x, w.two_gain, w.two_offset))
        up = tag(f"up{i}", F.linear(normed, w.up, w.up_bias))
        hidden = tag(f"hidden{i}", F.gelu(up, approximate="tanh"))
        x = tag(f"x{i}", x + F.linear(hidden, w.down, w.down_bias))
    final = tag("final", layer_norm_by_hand(x, m.final_gain, m.final_offset))
    return tag("logits", final @ m.table.t())


@PAIRS.add
def gpt2_conv1d_vs_linear() -> Pair:
    """Four layers: addmm over [in, out] with fused q, k, v and eager attention, or linear layers and sdpa."""
    g = seeded(1101)
    layers = [gpt2_layer(g) for _ in range(4)]
    ws = {"table": normal(g, VOCABULARY, WIDTH) * 0.7, "places": normal(g, 64, WIDTH) * 0.3}
    ws |= norm_weights(g, "final", width=WIDTH)
    tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH), generator=g)

    return {
        "A": Program(gpt2_of_conv1d, ws, [gpt2_fused(layer) for layer in layers]),
        "B": Program(gpt2_of_linear, ws, layers),
        "args": [tokens],
        "parts": {f"qkv{i}": [f"q{i}", f"k{i}", f"v{i}"] for i in range(4)},
    }


GROUPS = 2
QUERY_AND_KEY = WIDTH + GROUPS * HEAD_WIDTH


def llama_layer(g: Generator) -> dict[str, Tensor]:
    ws = matrices(g, "wq wo", WIDTH, WIDTH) | matrices(g, "wk wv", GROUPS * HEAD_WIDTH, WIDTH)
    ws |= matrices(g, "gate up", INNER, WIDTH) | {"down": matrix(g, WIDTH, INNER)}
    return ws | {"one": gain(g, WIDTH), "two": gain(g, WIDTH)}


def rotation() -> tuple[Tensor, Tensor]:
    """Cosines and sines [T, D / H]."""
    frequencies = 1.0 / 10_000.0 ** (torch.arange(0, HEAD_WIDTH, 2).float() / HEAD_WIDTH)
    angle = torch.outer(torch.arange(LENGTH).float(), frequencies)
    return torch.cat([angle, angle], -1).cos(), torch.cat([angle, angle], -1).sin()


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def rotated_by_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """As serving code does it: each half is computed and written where it belongs."""
    half = x.shape[-1] // 2
    first, second, out = x[..., :half], x[..., half:], torch.empty_like(x)
    out[..., :half] = first * cos[:, :half] - second * sin[:, :half]
    out[..., half:] = second * cos[:, half:] + first * sin[:, half:]
    return out


def training_attention(w: Weights, normed: Tensor, i: int, cos: Tensor, sin: Tensor) -> Tensor:
    q = tag(f"q{i}", split_heads(F.linear(normed, w.wq), HEADS))
    k = tag(f"k{i}", split_heads(F.linear(normed, w.wk), GROUPS))
    v = tag(f"v{i}", split_heads(F.linear(normed, w.wv), GROUPS))
    q, k = tag(f"q_rotated{i}", rotated(q, cos, sin)), tag(f"k_rotated{i}", rotated(k, cos, sin))
    k, v = (heads.repeat_interleave(HEADS // GROUPS, 1) for heads in (k, v))
    scores = q @ k.transpose(2, 3) / sqrt(HEAD_WIDTH) + causal_mask(LENGTH)
    context = tag(f"context{i}", torch.softmax(scores, -1, dtype=torch.float32) @ v)
    return F.linear(merge_heads(context), w.wo)


def training_llama(m: Program, tokens: Tensor) -> Tensor:
    x = tag("x", F.embedding(tokens, m.table))
    cos, sin = rotation()
    for i, w in enumerate(m.layers):
        normed = tag(f"one{i}", rms_norm_by_hand(x, w.one))
        x = tag(f"mid{i}", x + training_attention(w, normed, i, cos, sin))
        normed = tag(f"two{i}", rms_norm_by_hand(x, w.two))
        gate, up = tag(f"gate{i}", F.linear(normed, w.gate)), tag(f"up{i}", F.linear(normed, w.up))
        x = tag(f"x{i}", x + F.linear(tag(f"hidden{i}", F.silu(gate) * up), w.down))
    return tag("logits", F.linear(tag("final", rms_norm_by_hand(x, m.final)), m.head))


def serving_attention(w: Weights, normed: Tensor, i: int, cos: Tensor, sin: Tensor) -> Tensor:
    qkv = tag(f"qkv{i}", F.linear(normed, w.qkv))
    q = tag(f"q{i}", split_heads(qkv[..., :WIDTH], HEADS))
    k = tag(f"k{i}", split_heads(qkv[..., WIDTH:QUERY_AND_KEY], GROUPS))
    v = tag(f"v{i}", split_heads(qkv[..., QUERY_AND_KEY:], GROUPS))
    q = tag(f"q_rotated{i}", rotated_by_halves(q, cos, sin))
    k = tag(f"k_rotated{i}", rotated_by_halves(k, cos, sin))
    context = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    return F.linear(merge_heads(tag(f"context{i}", context)), w.wo)


def serving_llama(m: Program, tokens: Tensor) -> Tensor:
    x = tag("x", m.table.index_select(0, tokens.flatten()).view(BATCH, LENGTH, WIDTH))
    cos, sin = rotation()
    residual = x.clone()
    for i, w in enumerate(m.layers):
        normed = tag(f"one{i}", F.rms_norm(residual, (WIDTH,), w.one, 1e-6))
        residual.add_(serving_attention(w, normed, i, cos, sin))
        normed = tag(f"two{i}", F.rms_norm(tag(f"mid{i}", residual), (WIDTH,), w.two, 1e-6))
        gate, up = tag(f"gate_up{i}", F.linear(normed, w.gate_up)).chunk(2, dim=-1)
        hidden = F.silu(tag(f"gate{i}", gate)).mul_(tag(f"up{i}", up))
        tag(f"x{i}", residual.add_(F.linear(tag(f"hidden{i}", hidden), w.down)))
    return tag("logits", F.linear(tag("final", F.rms_norm(residual, (WIDTH,), m.final, 1e-6)), m.head))


@PAIRS.add
def llama_training_style_vs_serving_style() -> Pair:
    """Three layers with rotations and grouped queries: separate weights, or fused ones and work in place."""
    g = seeded(1102)
    layers = [llama_layer(g) for _ in range(3)]
    fused_layers = [
        {
            "qkv": torch.cat([w["wq"], w["wk"], w["wv"]]),
            "gate_up": torch.cat([w["gate"], w["up"]]),
            **{name: w[name] for name in ("wo", "down", "one", "two")},
        }
        for w in layers
    ]
    ws = {
        "table": normal(g, VOCABULARY, WIDTH),
        "final": gain(g, WIDTH),
        "head": matrix(g, VOCABULARY, WIDTH),
    }
    tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH), generator=g)

    parts = {f"qkv{i}": [f"q{i}", f"k{i}", f"v{i}"] for i in range(3)}
    return {
        "A": Program(training_llama, ws, layers),
        "B": Program(serving_llama, ws, fused_layers),
        "args": [tokens],
        "parts": parts | {f"gate_up{i}": [f"gate{i}", f"up{i}"] for i in range(3)},
    }


def builtin_encoder_layer(w: dict[str, Tensor]) -> nn.Module:
    """PyTorch's own layer, which outside of training is one operator."""
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, activation=F.gelu, batch_first=True)
    names = {
        "self_attn.in_proj_weight": "qkv",
        "self_attn.in_proj_bias": "qkv_bias",
        "self_attn.out_proj.weight": "wo",
        "self_attn.out_proj.bias": "bo",
        "norm1.weight": "one_gain",
        "norm1.bias": "one_offset",
        "norm2.weight": "two_gain",
        "norm2.bias": "two_offset",
        "linear1.weight": "up",
        "linear1.bias": "up_bias",
        "linear2.weight": "down",
        "linear2.bias": "down_bias",
    }
    layer.load_state_dict({theirs: w[ours] for theirs, ours in names.items()})
    return layer.eval().requires_grad_(False)


class BuiltinEncoder(nn.Module):
    def __init__(self, layers: list[dict[str, Tensor]], pool: Weights) -> None:
        super().__init__()
        self.layers = nn.ModuleList(builtin_encoder_layer(layer) for layer in layers)
        self.pool = pool

    def forward(self, x: Tensor) -> Tensor:
        tag("x", x)
        for i, layer in enumerate(self.layers):
            x = tag(f"x{i}", layer(x))
        return pooled(self.pool, x)


def pooled(m: Weights, x: Tensor) -> Tensor:
    return tag("pooled", torch.tanh(F.linear(layer_norm(x, m.pooled_gain, m.pooled_offset), m.pool)))


@PAIRS.add
def encoder_layer_opaque_vs_by_hand() -> Pair:
    """BERT's layers, norms after the residuals: each one operator of PyTorch, or about twenty."""
    g = seeded(1103)
    layers = [
        {"qkv": matrix(g, 3 * WIDTH, WIDTH), "qkv_bias": offset(g, 3 * WIDTH)}
        | {"wo": matrix(g, WIDTH, WIDTH), "bo": offset(g, WIDTH)}
        | norm_weights(g, "one", "two", width=WIDTH)
        | {"up": matrix(g, INNER, WIDTH), "up_bias": offset(g, INNER)}
        | {"down": matrix(g, WIDTH, INNER), "down_bias": offset(g, WIDTH)}
        for _ in range(3)
    ]
    ws = norm_weights(g, "pooled", width=WIDTH) | {"pool": matrix(g, WIDTH, WIDTH)}

    def by_hand(m: Program, x: Tensor) -> Tensor:
        tag("x", x)
        for i, w in enumerate(m.layers):
            q, k, v = (split_heads(p, HEADS) for p in F.linear(x, w.qkv, w.qkv_bias).chunk(3, dim=-1))
            q, k, v = tag(f"q{i}", q), tag(f"k{i}", k), tag(f"v{i}", v)
            probs = tag(f"probs{i}", torch.softmax(q @ k.transpose(-1, -2) / sqrt(HEAD_WIDTH), -1))
            context = tag(f"context{i}", probs @ v)
            out = F.linear(merge_heads(context), w.wo, w.bo)
            x = tag(f"mid{i}", layer_norm_by_hand(x + out, w.one_gain, w.one_offset))
            hidden = tag(f"hidden{i}", F.gelu(F.linear(x, w.up, w.up_bias)))
            out = F.linear(hidden, w.down, w.down_bias)
            x = tag(f"x{i}", layer_norm_by_hand(x + out, w.two_gain, w.two_offset))
        return pooled(m, x)

    return {
        "A": BuiltinEncoder(layers, Weights(ws)),
        "B": Program(by_hand, ws, layers),
        "args": [normal(g, BATCH, LENGTH, WIDTH)],
    }
