"""Attention that copies, materialises or computes again what it need not."""

import torch
import torch.nn.functional as F
from planting import LENGTH, WIDTH, Planted, Step, beside, matrix, normal, within
from torch import Tensor

HEADS, GROUPS, HEAD_WIDTH = 16, 2, 32
CACHED = 2048  # keys and values of earlier tokens
INNER = HEADS * HEAD_WIDTH


def decoder_weights() -> dict[str, Tensor]:
    cache = (1, GROUPS, CACHED, HEAD_WIDTH)
    return {
        "wq": matrix(INNER, WIDTH, 41),
        "keys": normal(*cache, seed=42),
        "values": normal(*cache, seed=43),
        "wo": matrix(WIDTH, INNER, 44),
    }


def repeated(heads: Tensor) -> Tensor:
    """Keys or values [1, G, T, E] for every head of a group, [1, H, T, E]."""
    shape = (1, GROUPS, HEADS // GROUPS, CACHED, HEAD_WIDTH)
    return heads[:, :, None].expand(shape).reshape(1, HEADS, CACHED, HEAD_WIDTH)  # <- repeated_heads


def attend_repeated(m: Planted, x: Tensor) -> Tensor:
    q = F.linear(x[:, -1:], m.wq).view(1, 1, HEADS, HEAD_WIDTH).transpose(1, 2)
    heads = F.scaled_dot_product_attention(q, repeated(m.keys), repeated(m.values))
    return F.linear(heads.transpose(1, 2).reshape(1, 1, INNER), m.wo)


def attend_folded(m: Planted, x: Tensor) -> Tensor:
    q = F.linear(x[:, -1:], m.wq).view(1, GROUPS, HEADS // GROUPS, HEAD_WIDTH)
    heads = F.scaled_dot_product_attention(q, m.keys, m.values)
    return F.linear(heads.reshape(1, 1, INNER), m.wo)


def repeated_heads_wasteful() -> Step:
    return within(Planted(attend_repeated, **decoder_weights()))


def repeated_heads_lean() -> Step:
    return within(Planted(attend_folded, **decoder_weights()))


def attend_interleaved(m: Planted, x: Tensor) -> Tensor:
    q = F.linear(x[:, -1:], m.wq).view(1, HEADS, 1, HEAD_WIDTH)
    keys = m.keys.repeat_interleave(HEADS // GROUPS, dim=1)  # <- interleaved_heads
    values = m.values.repeat_interleave(HEADS // GROUPS, dim=1)  # <- interleaved_heads
    shares = torch.softmax(q @ keys.transpose(2, 3) / HEAD_WIDTH**0.5, -1)
    return F.linear((shares @ values).view(1, 1, INNER), m.wo)


def attend_grouped(m: Planted, x: Tensor) -> Tensor:
    q = F.linear(x[:, -1:], m.wq).view(1, GROUPS, HEADS // GROUPS, HEAD_WIDTH)
    shares = torch.softmax(q @ m.keys.transpose(2, 3) / HEAD_WIDTH**0.5, -1)
    return F.linear((shares @ m.values).reshape(1, 1, INNER), m.wo)


def interleaved_heads_wasteful() -> Step:
    return within(Planted(attend_interleaved, **decoder_weights()))


def interleaved_heads_lean() -> Step:
    return within(Planted(attend_grouped, **decoder_weights()))


def prefill_weights() -> dict[str, Tensor]:
    return {"qkv": matrix(3 * INNER, WIDTH, 45), "wo": matrix(WIDTH, INNER, 46)}


def projected(m: Planted, x: Tensor) -> tuple[Tensor, ...]:
    """q, k and v by head, [1, H, T, E]."""
    parts = F.linear(x, m.qkv).chunk(3, dim=-1)
    return tuple(part.unflatten(-1, (HEADS, HEAD_WIDTH)).transpose(1, 2) for part in parts)


def merged(m: Planted, heads: Tensor) -> Tensor:
    return F.linear(heads.transpose(1, 2).reshape(1, LENGTH, INNER), m.wo)


def attend_masked(m: Planted, x: Tensor) -> Tensor:
    q, k, v = projected(m, x)
    mask = torch.full((LENGTH, LENGTH), float("-inf")).triu(1)
    return merged(m, F.scaled_dot_product_attention(q, k, v, attn_mask=mask))  # <- dense_mask


def attend_causal(m: Planted, x: Tensor) -> Tensor:
    q, k, v = projected(m, x)
    return merged(m, F.scaled_dot_product_attention(q, k, v, is_causal=True))


def dense_mask_wasteful() -> Step:
    return within(Planted(attend_masked, **prefill_weights()))


def dense_mask_lean() -> Step:
    return within(Planted(attend_causal, **prefill_weights()))


def attend_eagerly(m: Planted, x: Tensor) -> Tensor:
    q, k, v = projected(m, x)
    scores = q @ k.transpose(2, 3) / HEAD_WIDTH**0.5  # <- eager_attention
    future = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
    shares = torch.softmax(scores.masked_fill(future, float("-inf")), -1)  # <- eager_attention
    return merged(m, shares @ v)  # <- eager_attention


def eager_attention_wasteful() -> Step:
    return within(Planted(attend_eagerly, **prefill_weights()))


def eager_attention_lean() -> Step:
    return within(Planted(attend_causal, **prefill_weights()))


def attend_copied(m: Planted, x: Tensor) -> Tensor:
    q = F.linear(x[:, -1:], m.wq).view(1, HEADS, 1, HEAD_WIDTH)
    keys = m.keys.transpose(1, 2).contiguous()  # <- copied_cache
    values = m.values.transpose(1, 2).contiguous()  # <- copied_cache
    return F.linear(F.scaled_dot_product_attention(q, keys, values).reshape(1, 1, INNER), m.wo)


def attend_viewed(m: Planted, x: Tensor) -> Tensor:
    q = F.linear(x[:, -1:], m.wq).view(1, HEADS, 1, HEAD_WIDTH)
    heads = F.scaled_dot_product_attention(q, m.keys.transpose(1, 2), m.values.transpose(1, 2))
    return F.linear(heads.reshape(1, 1, INNER), m.wo)


def token_first() -> dict[str, Tensor]:
    cache = (1, CACHED, HEADS, HEAD_WIDTH)
    return decoder_weights() | {"keys": normal(*cache, seed=42), "values": normal(*cache, seed=43)}


def copied_cache_wasteful() -> Step:
    return within(Planted(attend_copied, **token_first()))


def copied_cache_lean() -> Step:
    return within(Planted(attend_viewed, **token_first()))


SAMPLES = 24


def mask_per_sample(x: Tensor) -> Tensor:
    """Causal sums of a few channels, for each of a batch of samples."""
    samples = x[0].T[:SAMPLES].unsqueeze(-1)
    masks = torch.stack([torch.ones(LENGTH, LENGTH).tril() for _ in range(SAMPLES)])  # <- mask_per_sample
    return masks @ samples


def mask_once(x: Tensor) -> Tensor:
    samples = x[0].T[:SAMPLES].unsqueeze(-1)
    return torch.ones(LENGTH, LENGTH).tril() @ samples


def mask_per_sample_wasteful() -> Step:
    return beside(mask_per_sample)


def mask_per_sample_lean() -> Step:
    return beside(mask_once)


def joined_twice(m: Planted, x: Tensor) -> Tensor:
    """Joint attention over two streams, which are split for nothing between two concatenations."""
    both = torch.cat([F.linear(x, m.qkv), F.linear(x.flip(1), m.qkv)], 1)
    image, text = both.split(LENGTH, dim=1)  # <- split_and_joined
    return attended(m, torch.cat([image, text], 1))  # <- split_and_joined


def joined_once(m: Planted, x: Tensor) -> Tensor:
    return attended(m, torch.cat([F.linear(x, m.qkv), F.linear(x.flip(1), m.qkv)], 1))


def attended(m: Planted, both: Tensor) -> Tensor:
    parts = both.chunk(3, dim=-1)
    q, k, v = (part.unflatten(-1, (HEADS, HEAD_WIDTH)).transpose(1, 2) for part in parts)
    heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return F.linear(heads[:, :, :LENGTH].transpose(1, 2).reshape(1, LENGTH, INNER), m.wo)


def split_and_joined_wasteful() -> Step:
    return within(Planted(joined_twice, **prefill_weights()))


def split_and_joined_lean() -> Step:
    return within(Planted(joined_once, **prefill_weights()))
