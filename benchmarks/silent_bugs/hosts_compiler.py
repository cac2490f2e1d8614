"""A language model as eager code writes it: what a compiler's pass rewrites, in place or by a pattern.

``Decoder`` takes the parts that mix tokens, one a layer; an entry hands in the one with its bug. Attention,
norm and rotation are spelled out, with views, transposes and writes in place that are right.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH, TOKENS, WIDTH, HEADS, VOCABULARY = 2, 6, 24, 6, 40
HEAD = WIDTH // HEADS
EPSILON = 1e-5


class Norm(nn.Module):
    """A root-mean-square norm."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.empty(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * self.gain


def rotated(x: Tensor) -> Tensor:
    """Neighbours turned by their position, all of them taken apart and stacked again; x [B, H, T, D]."""
    tokens, half = x.shape[-2], x.shape[-1] // 2
    rates = 10_000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
    angles = torch.arange(tokens, device=x.device, dtype=torch.float32)[:, None] * rates
    even, odd = x.unflatten(-1, (half, 2)).unbind(-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def ahead(tokens: int, device: torch.device) -> Tensor:
    """Which keys a query may not see, [T, T]."""
    return torch.ones(tokens, tokens, dtype=torch.bool, device=device).triu(1)


class Attention(nn.Module):
    """Heads in front of tokens, the key turned once more for the scores."""

    def __init__(self) -> None:
        super().__init__()
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (w(x).unflatten(-1, (HEADS, HEAD)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        q, k = rotated(q), rotated(k)
        scores = q @ k.transpose(-2, -1) * HEAD**-0.5
        scores = scores.masked_fill(ahead(x.shape[1], x.device), -torch.inf)
        return self.wo((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class FusedAttention(Attention):
    """The same with PyTorch's fused operator, as a compiler's pass puts it in."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (w(x).unflatten(-1, (HEADS, HEAD)).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        fused = F.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True)
        return self.wo(fused.transpose(1, 2).flatten(2))


class Perceptron(nn.Module):
    """Gated; the bias is added in place, to a value that nothing else reads."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.gate = (nn.Linear(WIDTH, 2 * WIDTH, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.bias = nn.Parameter(torch.empty(2 * WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        wide = self.up(x)
        wide.add_(self.bias)
        return self.down(F.silu(self.gate(x)).mul_(wide))


class Layer(nn.Module):
    """A part that mixes tokens and one that does not, behind norms."""

    def __init__(self, mixing: nn.Module) -> None:
        super().__init__()
        self.mixing, self.perceptron = mixing, Perceptron()
        self.mixing_norm, self.perceptron_norm = Norm(), Norm()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mixing(self.mixing_norm(x))
        return x + self.perceptron(self.perceptron_norm(x))


class Decoder(nn.Module):
    """Layers between an embedding and a head that is the embedding again."""

    def __init__(self, mixings: Sequence[nn.Module]) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(Layer(mixing) for mixing in mixings)
        self.norm = Norm()

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.embedding.weight)


def decoder_of(*mixings: Callable[[], nn.Module]) -> Callable[[], object]:
    """The build function of a decoder with these parts."""

    def build() -> object:
        with torch.device("meta"):
            ids = torch.zeros(BATCH, TOKENS, dtype=torch.long)
            return Decoder([mixing() for mixing in mixings]).eval(), (ids,)

    return build
