"""Small decoders in plain PyTorch that both of torch's ONNX exporters take: a Llama and a GPT.

They hold weights (the exporters write them), a few thousand. Heads are 16 wide: exporters store the square
root of the scale of attention as a 32-bit float, which here is exact.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

VOCABULARY, WIDTH, HEADS, KV_HEADS, HEAD, HIDDEN, LAYERS, TOKENS = 64, 64, 4, 2, 16, 96, 2, 12


class RmsNorm(nn.Module):
    """Written out, as Llama has it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(WIDTH) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding, halves against each other."""
    first, second = x[..., : HEAD // 2], x[..., HEAD // 2 :]
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Attention(nn.Module):
    """Causal; with fewer key heads than query heads where ``kv_heads`` says so, and turned where told."""

    def __init__(self, kv_heads: int, *, bias: bool) -> None:
        super().__init__()
        self.kv_heads = kv_heads
        self.q = nn.Linear(WIDTH, HEADS * HEAD, bias=bias)
        self.k = nn.Linear(WIDTH, kv_heads * HEAD, bias=bias)
        self.v = nn.Linear(WIDTH, kv_heads * HEAD, bias=bias)
        self.o = nn.Linear(HEADS * HEAD, WIDTH, bias=bias)

    def forward(self, x: Tensor, cos: Tensor | None = None, sin: Tensor | None = None) -> Tensor:
        batch, tokens, _ = x.shape
        q = self.q(x).view(batch, tokens, HEADS, HEAD).transpose(1, 2)
        k = self.k(x).view(batch, tokens, self.kv_heads, HEAD).transpose(1, 2)
        v = self.v(x).view(batch, tokens, self.kv_heads, HEAD).transpose(1, 2)
        if cos is not None and sin is not None:
            q, k = turned(q, cos, sin), turned(k, cos, sin)
        k, v = (part.repeat_interleave(HEADS // self.kv_heads, dim=1) for part in (k, v))
        made = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(made.transpose(1, 2).reshape(batch, tokens, HEADS * HEAD))


class LlamaLayer(nn.Module):
    """Attention and a gated feed-forward."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = RmsNorm(), RmsNorm()
        self.attention = Attention(KV_HEADS, bias=False)
        self.gate, self.up = nn.Linear(WIDTH, HIDDEN, bias=False), nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x), cos, sin)
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """Positions are an input: their angles are computed, not folded."""

    rates: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(LlamaLayer() for _ in range(LAYERS))
        self.norm = RmsNorm()
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        rates = 10000.0 ** (-torch.arange(0, HEAD, 2).float() / HEAD)
        self.register_buffer("rates", rates, persistent=False)

    def forward(self, tokens: Tensor, positions: Tensor) -> Tensor:
        angles = positions[:, None, :, None].float() * self.rates
        cos, sin = (torch.cat((part, part), dim=-1) for part in (angles.cos(), angles.sin()))
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.head(self.norm(x))


class GptLayer(nn.Module):
    """Attention and a feed-forward, with biases."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention(HEADS, bias=True)
        self.up, self.down = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """Positions have embeddings; logits read the embedding of tokens again."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(TOKENS, WIDTH)
        self.layers = nn.ModuleList(GptLayer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens: Tensor, positions: Tensor) -> Tensor:
        x = self.embed(tokens) + self.place(positions)
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.embed.weight)


def inputs() -> tuple[Tensor, Tensor]:
    """Tokens and positions."""
    tokens = torch.arange(2 * TOKENS).reshape(2, TOKENS) % VOCABULARY
    return tokens, torch.arange(TOKENS).expand(2, TOKENS).clone()


MODELS = {"Llama": Llama, "GPT": Gpt}
