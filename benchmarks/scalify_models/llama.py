"""Llama as Transformers has it, and the same with tensor parallelism in plain PyTorch collectives.

For ``scalify capture``: ``baseline_ATTENTION`` builds the former, ``tensor_parallel`` the latter. Sizes come
from the environment variable SCALIFY_LLAMA (a name in SIZES). Everything is on the meta device: no weight is
held.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The shape of a model and of what it is run on."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int
    batch: int = 2
    tokens: int = 16

    @property
    def head_dim(self) -> int:
        """The width of one head."""
        return self.hidden // self.heads


SIZES = {
    "tiny": Size(layers=2, hidden=128, heads=16, kv_heads=8, intermediate=256, vocabulary=512),
    "8b": Size(
        layers=32, hidden=4096, heads=32, kv_heads=8, intermediate=14336, vocabulary=128256, tokens=128
    ),
    "405b-16": Size(
        layers=16, hidden=16384, heads=128, kv_heads=8, intermediate=53248, vocabulary=128256, tokens=128
    ),
    "405b": Size(
        layers=126, hidden=16384, heads=128, kv_heads=8, intermediate=53248, vocabulary=128256, tokens=128
    ),
}


def chosen() -> Size:
    """The size that the environment names."""
    return SIZES[os.environ.get("SCALIFY_LLAMA", "tiny")]


def _inputs(size: Size) -> Tensor:
    return torch.zeros(size.batch, size.tokens, dtype=torch.long)


def _baseline(attention: str) -> tuple[nn.Module, tuple[Tensor], dict[str, Any]]:
    from transformers import AutoModelForCausalLM, LlamaConfig

    size = chosen()
    config = LlamaConfig(
        hidden_size=size.hidden,
        intermediate_size=size.intermediate,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.kv_heads,
        vocab_size=size.vocabulary,
    )
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, attn_implementation=attention)
        return model.eval(), (_inputs(size),), {"use_cache": False}


def baseline_eager() -> tuple[nn.Module, tuple[Tensor], dict[str, Any]]:
    """Transformers' Llama with its own attention."""
    return _baseline("eager")


def baseline_sdpa() -> tuple[nn.Module, tuple[Tensor], dict[str, Any]]:
    """Transformers' Llama with PyTorch's attention."""
    return _baseline("sdpa")


class Norm(nn.Module):
    """Root-mean-square normalisation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """x [B, T, H] -> [B, T, H]."""
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * (x * scale)


class Attention(nn.Module):
    """The heads of one rank; key and value heads are held by several ranks where there are fewer of them."""

    def __init__(self, size: Size, ranks: int, group: dist.ProcessGroup) -> None:
        super().__init__()
        self.size, self.group = size, group
        self.heads = size.heads // ranks
        self.kv_heads = max(1, size.kv_heads // ranks)
        self.q_proj = nn.Linear(size.hidden, self.heads * size.head_dim, bias=False)
        self.k_proj = nn.Linear(size.hidden, self.kv_heads * size.head_dim, bias=False)
        self.v_proj = nn.Linear(size.hidden, self.kv_heads * size.head_dim, bias=False)
        self.o_proj = nn.Linear(self.heads * size.head_dim, size.hidden, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """x [B, T, H]; cos, sin [T, D] -> [B, T, H], summed over the ranks."""
        batch, tokens, _ = x.shape
        width = self.size.head_dim
        q = self.q_proj(x).view(batch, tokens, self.heads, width).transpose(1, 2)
        k = self.k_proj(x).view(batch, tokens, self.kv_heads, width).transpose(1, 2)
        v = self.v_proj(x).view(batch, tokens, self.kv_heads, width).transpose(1, 2)
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.heads != self.kv_heads)
        y = y.transpose(1, 2).reshape(batch, tokens, self.heads * width)
        return funcol.all_reduce(self.o_proj(y), "sum", self.group)


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding, halves against halves."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Mlp(nn.Module):
    """A part of the intermediate width."""

    def __init__(self, size: Size, ranks: int, group: dist.ProcessGroup) -> None:
        super().__init__()
        self.group = group
        self.gate_proj = nn.Linear(size.hidden, size.intermediate // ranks, bias=False)
        self.up_proj = nn.Linear(size.hidden, size.intermediate // ranks, bias=False)
        self.down_proj = nn.Linear(size.intermediate // ranks, size.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """x [B, T, H] -> [B, T, H], summed over the ranks."""
        y = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return funcol.all_reduce(y, "sum", self.group)


class Layer(nn.Module):
    """Attention and feed-forward, each on a residual stream that all ranks hold."""

    def __init__(self, size: Size, ranks: int, group: dist.ProcessGroup) -> None:
        super().__init__()
        self.self_attn = Attention(size, ranks, group)
        self.mlp = Mlp(size, ranks, group)
        self.input_layernorm = Norm(size.hidden)
        self.post_attention_layernorm = Norm(size.hidden)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """x [B, T, H] -> [B, T, H]."""
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Embedding(nn.Module):
    """The rows of one rank: what other ranks hold is 0 here, and summed over all."""

    def __init__(self, size: Size, ranks: int, rank: int, group: dist.ProcessGroup) -> None:
        super().__init__()
        self.group = group
        self.rows = size.vocabulary // ranks
        self.first = rank * self.rows
        self.weight = nn.Parameter(torch.zeros(self.rows, size.hidden))

    def forward(self, ids: Tensor) -> Tensor:
        """ids [B, T] -> [B, T, H]."""
        outside = (ids < self.first) | (ids >= self.first + self.rows)
        local = (ids - self.first).masked_fill(outside, 0)
        found = F.embedding(local, self.weight).masked_fill(outside.unsqueeze(-1), 0.0)
        return funcol.all_reduce(found, "sum", self.group)


class Model(nn.Module):
    """Everything between ids and the last hidden state."""

    def __init__(self, size: Size, ranks: int, rank: int, group: dist.ProcessGroup) -> None:
        super().__init__()
        self.size = size
        self.embed_tokens = Embedding(size, ranks, rank, group)
        self.layers = nn.ModuleList(Layer(size, ranks, group) for _ in range(size.layers))
        self.norm = Norm(size.hidden)
        self.rotary_emb = Rotary(size)

    def forward(self, ids: Tensor) -> Tensor:
        """ids [B, T] -> [B, T, H]."""
        x = self.embed_tokens(ids)
        cos, sin = self.rotary_emb(ids.shape[1])
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x)


class Rotary(nn.Module):
    """Angles by position, from the frequencies that the model holds as a buffer."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.register_buffer("inv_freq", torch.zeros(size.head_dim // 2))

    def forward(self, tokens: int) -> tuple[Tensor, Tensor]:
        """Cosines and sines [T, D]."""
        assert isinstance(self.inv_freq, Tensor)
        positions = torch.arange(tokens, device=self.inv_freq.device, dtype=torch.float32)
        angles = torch.outer(positions, self.inv_freq)
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos(), angles.sin()


class TensorParallelLlama(nn.Module):
    """Logits stay with the rank that holds their part of the vocabulary."""

    def __init__(self, size: Size, ranks: int, rank: int, group: dist.ProcessGroup) -> None:
        super().__init__()
        self.model = Model(size, ranks, rank, group)
        self.lm_head = nn.Linear(size.hidden, size.vocabulary // ranks, bias=False)

    def forward(self, input_ids: Tensor) -> Tensor:
        """input_ids [B, T] -> [B, T, V / ranks]."""
        return self.lm_head(self.model(input_ids))


def tensor_parallel(rank: int, groups: Mapping[str, dist.ProcessGroup]) -> tuple[nn.Module, tuple[Tensor]]:
    """One rank's program on a mesh with an axis ``tp``."""
    size = chosen()
    group = groups["tp"]
    with torch.device("meta"):
        module = TensorParallelLlama(size, dist.get_world_size(group), dist.get_rank(group), group)
        return module.eval(), (_inputs(size),)
