"""Two ways that cost the same, or nearly so."""

import torch
import torch.nn.functional as F
from planting import LENGTH, WIDTH, Planted, Step, beside, matrix, normal, trained, within
from torch import Tensor

SIDE, WINDOWS = 8, 4  # windows of SIDE by SIDE cover the sequence


def rms_by_hand(m: Planted, x: Tensor) -> Tensor:
    wide = m.wide + x
    return wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6) * m.gain


def rms_by_call(m: Planted, x: Tensor) -> Tensor:
    return F.rms_norm(m.wide + x, (WIDTH,), m.gain, 1e-6)


def wide_rows() -> dict[str, Tensor]:
    return {"wide": normal(8, LENGTH, WIDTH, seed=121), "gain": 1 + 0.1 * normal(WIDTH, seed=122)}


def manual_rms_norm_wasteful() -> Step:
    return beside(Planted(rms_by_hand, **wide_rows()))


def manual_rms_norm_lean() -> Step:
    return beside(Planted(rms_by_call, **wide_rows()))


def drawn(x: Tensor) -> Tensor:
    return torch.multinomial(x[0].repeat(1, 4).softmax(-1), 1)


def raced(x: Tensor) -> Tensor:
    shares = x[0].repeat(1, 4).softmax(-1)
    return (shares / torch.empty_like(shares).exponential_()).argmax(-1, keepdim=True)


def multinomial_wasteful() -> Step:
    return beside(drawn)


def multinomial_lean() -> Step:
    return beside(raced)


def offsets() -> Tensor:
    places = torch.cartesian_prod(torch.arange(SIDE), torch.arange(SIDE))
    apart = places[:, None] - places + SIDE - 1
    return (apart[..., 0] * (2 * SIDE - 1) + apart[..., 1]).flatten()


def windowed(m: Planted, x: Tensor, bias: Tensor) -> Tensor:
    parts = F.linear(x.view(WINDOWS, -1, WIDTH), m.qkv).chunk(3, dim=-1)
    q, k, v = (part.unflatten(-1, (4, -1)).transpose(1, 2) for part in parts)
    heads = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    return heads.transpose(1, 2).reshape(x.shape)


def bias_gathered(m: Planted, x: Tensor) -> Tensor:
    bias = m.table[m.offsets].view(SIDE**2, SIDE**2, 4).permute(2, 0, 1).contiguous()
    return windowed(m, x, bias)


def bias_kept(m: Planted, x: Tensor) -> Tensor:
    return windowed(m, x, m.bias)


def window_weights() -> dict[str, Tensor]:
    table, places = normal((2 * SIDE - 1) ** 2, 4, seed=123), offsets()
    bias = table[places].view(SIDE**2, SIDE**2, 4).permute(2, 0, 1).contiguous()
    return {"qkv": matrix(3 * WIDTH, WIDTH, 124), "table": table, "offsets": places, "bias": bias}


def bias_gather_wasteful() -> Step:
    return within(Planted(bias_gathered, **window_weights()))


def bias_gather_lean() -> Step:
    return within(Planted(bias_kept, **window_weights()))


def bias_joined(m: Planted, x: Tensor) -> Tensor:
    bias = torch.cat((m.first, torch.zeros_like(m.first), m.last))
    return F.linear(x, m.qkv, bias)


def bias_whole(m: Planted, x: Tensor) -> Tensor:
    return F.linear(x, m.qkv, m.bias)


def joined_bias() -> dict[str, Tensor]:
    first, last = normal(2 * WIDTH, seed=125), normal(2 * WIDTH, seed=126)
    bias = torch.cat((first, torch.zeros_like(first), last))
    return {"first": first, "last": last, "bias": bias, "qkv": matrix(6 * WIDTH, WIDTH, 127)}


def bias_concatenation_wasteful() -> Step:
    return beside(Planted(bias_joined, **joined_bias()))


def bias_concatenation_lean() -> Step:
    return beside(Planted(bias_whole, **joined_bias()))


def projected_apart(m: Planted, x: Tensor) -> Tensor:
    return F.silu(F.linear(x, m.query)) * F.linear(x, m.key) + F.linear(x, m.value)


def projected_at_once(m: Planted, x: Tensor) -> Tensor:
    q, k, v = F.linear(x, m.qkv).chunk(3, dim=-1)
    return F.silu(q) * k + v


def projections() -> dict[str, Tensor]:
    whole = matrix(12 * WIDTH, WIDTH, 128)
    query, key, value = (part.clone() for part in whole.chunk(3))
    return {"query": query, "key": key, "value": value, "qkv": whole}


def fused_projection_wasteful() -> Step:
    return beside(Planted(projected_apart, **projections()))


def fused_projection_lean() -> Step:
    return beside(Planted(projected_at_once, **projections()))


def tracked(m: Planted, x: Tensor) -> Tensor:
    return F.gelu(F.linear(x, m.qkv)).sum(-1)


def untracked(m: Planted, x: Tensor) -> Tensor:
    with torch.no_grad():
        return F.gelu(F.linear(x, m.qkv)).sum(-1)


def missing_no_grad_wasteful() -> Step:
    return trained(Planted(tracked, qkv=matrix(12 * WIDTH, WIDTH, 129)))


def missing_no_grad_lean() -> Step:
    return trained(Planted(untracked, qkv=matrix(12 * WIDTH, WIDTH, 129)))


def contracted_by_einsum(m: Planted, x: Tensor) -> Tensor:
    return torch.einsum("jk,ijkl->il", x[0, :32], m.blocks)


def contracted_by_sum(m: Planted, x: Tensor) -> Tensor:
    return (x[0, :32, :, None] * m.blocks).sum((1, 2))


def blocks() -> dict[str, Tensor]:
    return {"blocks": normal(4, 32, WIDTH, 16, seed=130)}


def einsum_of_two_wasteful() -> Step:
    return beside(Planted(contracted_by_einsum, **blocks()))


def einsum_of_two_lean() -> Step:
    return beside(Planted(contracted_by_sum, **blocks()))


def pooled(m: Planted, x: Tensor) -> Tensor:
    return F.adaptive_avg_pool2d(m.images * x[0, 0, 0], 1).flatten(1)


def averaged(m: Planted, x: Tensor) -> Tensor:
    return (m.images * x[0, 0, 0]).mean((2, 3))


def images() -> dict[str, Tensor]:
    return {"images": normal(8, WIDTH, 32, 32, seed=131)}


def adaptive_pool_wasteful() -> Step:
    return beside(Planted(pooled, **images()))


def adaptive_pool_lean() -> Step:
    return beside(Planted(averaged, **images()))


def masked_by_index(m: Planted, x: Tensor) -> Tensor:
    wide = m.wide + x
    wide[m.wide > 0] = 0.0
    return wide


def masked_by_fill(m: Planted, x: Tensor) -> Tensor:
    return (m.wide + x).masked_fill_(m.wide > 0, 0.0)


def masked_assignment_wasteful() -> Step:
    return beside(Planted(masked_by_index, **wide_rows()))


def masked_assignment_lean() -> Step:
    return beside(Planted(masked_by_fill, **wide_rows()))
