"""Llama in plain PyTorch.

Letters: B batch, T tokens of this call, S positions up to and with them, D hidden, F inner, N heads,
K key/value heads, H head size, V vocabulary.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from magneton.errors import MagnetonError
from magneton.models.reference.cache import KeyValueCache, Room, causal_mask
from magneton.models.reference.weights import assign, read_weights

Turn = tuple[Tensor, Tensor]  # cosines and sines of T tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaShape:
    """The numbers of ``config.json`` that determine the model."""

    vocab: int
    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    rope_theta: float
    attention_bias: bool
    mlp_bias: bool
    tied: bool

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> "LlamaShape":
        """From a configuration in Hugging Face format, where absent keys have that format's defaults."""
        rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
        rope_type = rope.get("rope_type", rope.get("type", "default"))
        for key, value, known in (
            ("hidden_act", config.get("hidden_act", "silu"), "silu"),
            ("rope_type", rope_type, "default"),
        ):
            if value != known:
                raise MagnetonError(
                    f"the torch system's Llama has no {key} {value!r}", hint="use the transformers system"
                )
        heads = config["num_attention_heads"]
        return cls(
            vocab=config["vocab_size"],
            hidden=config["hidden_size"],
            inner=config["intermediate_size"],
            layers=config["num_hidden_layers"],
            heads=heads,
            kv_heads=config.get("num_key_value_heads") or heads,
            head_dim=config.get("head_dim") or config["hidden_size"] // heads,
            eps=config.get("rms_norm_eps", 1e-6),
            rope_theta=rope.get("rope_theta", config.get("rope_theta", 10000.0)),
            attention_bias=config.get("attention_bias", False),
            mlp_bias=config.get("mlp_bias", False),
            tied=config.get("tie_word_embeddings", False),
        )


class Rotary(nn.Module):
    """Cosines and sines of all positions, computed once."""

    cos: Tensor  # [S, H/2]: the two halves of a head turn by the same angles
    sin: Tensor

    def __init__(self, shape: LlamaShape, room: Room) -> None:
        super().__init__()
        exponents_H = torch.arange(0, shape.head_dim, 2, device=room.device).float() / shape.head_dim
        positions_S = torch.arange(room.positions, device=room.device).float()
        angles_SH = torch.outer(positions_S, 1.0 / shape.rope_theta**exponents_H)
        self.register_buffer("cos", angles_SH.cos().to(room.dtype), persistent=False)
        self.register_buffer("sin", angles_SH.sin().to(room.dtype), persistent=False)

    def forward(self, start: int, tokens: int) -> Turn:
        return self.cos[start : start + tokens], self.sin[start : start + tokens]


def rotate(x_BNTH: Tensor, cos_TH: Tensor, sin_TH: Tensor) -> Tensor:
    """Turn each pair (i, i + H/2) of a head by its position's angle."""
    first, second = x_BNTH.chunk(2, dim=-1)
    return torch.cat((first * cos_TH - second * sin_TH, second * cos_TH + first * sin_TH), dim=-1)


class Attention(nn.Module):
    def __init__(self, shape: LlamaShape, room: Room) -> None:
        super().__init__()
        self.head_dim = shape.head_dim
        self.grouped = shape.heads != shape.kv_heads
        q_size, kv_size = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        self.q_proj = nn.Linear(shape.hidden, q_size, bias=shape.attention_bias)
        self.k_proj = nn.Linear(shape.hidden, kv_size, bias=shape.attention_bias)
        self.v_proj = nn.Linear(shape.hidden, kv_size, bias=shape.attention_bias)
        self.o_proj = nn.Linear(q_size, shape.hidden, bias=shape.attention_bias)
        self.cache = KeyValueCache(shape.kv_heads, shape.head_dim, room)

    def forward(self, x_BTD: Tensor, turn: Turn, mask_TS: Tensor | None, start: int) -> Tensor:
        q_BNTH, k_BKTH, v_BKTH = (
            projection(x_BTD).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        k_BKSH, v_BKSH = self.cache(rotate(k_BKTH, *turn), v_BKTH, start)
        mixed_BNTH = F.scaled_dot_product_attention(
            rotate(q_BNTH, *turn),
            k_BKSH,
            v_BKSH,
            attn_mask=mask_TS,
            is_causal=start == 0,
            enable_gqa=self.grouped,
        )
        return self.o_proj(mixed_BNTH.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, shape: LlamaShape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.inner, bias=shape.mlp_bias)
        self.up_proj = nn.Linear(shape.hidden, shape.inner, bias=shape.mlp_bias)
        self.down_proj = nn.Linear(shape.inner, shape.hidden, bias=shape.mlp_bias)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x_BTD)) * self.up_proj(x_BTD))


class Layer(nn.Module):
    def __init__(self, shape: LlamaShape, room: Room) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.hidden, eps=shape.eps)
        self.self_attn = Attention(shape, room)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden, eps=shape.eps)
        self.mlp = Mlp(shape)

    def forward(self, x_BTD: Tensor, turn: Turn, mask_TS: Tensor | None, start: int) -> Tensor:
        x_BTD = x_BTD + self.self_attn(self.input_layernorm(x_BTD), turn, mask_TS, start)
        return x_BTD + self.mlp(self.post_attention_layernorm(x_BTD))


class Decoder(nn.Module):
    def __init__(self, shape: LlamaShape, room: Room) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab, shape.hidden)
        self.rotary = Rotary(shape, room)
        self.layers = nn.ModuleList(Layer(shape, room) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden, eps=shape.eps)

    def forward(self, ids_BT: Tensor, start: int) -> Tensor:
        tokens = ids_BT.shape[1]
        turn = self.rotary(start, tokens)
        mask_TS = causal_mask(tokens, start, ids_BT.device)
        x_BTD = self.embed_tokens(ids_BT)
        for layer in self.layers:
            x_BTD = layer(x_BTD, turn, mask_TS, start)
        return self.norm(x_BTD)


class Llama(nn.Module):
    """Logits of the last position [B, 1, V], or of all [B, T, V]; ``start`` tokens came before."""

    def __init__(self, shape: LlamaShape, room: Room, *, all_logits: bool = False) -> None:
        super().__init__()
        self.all_logits = all_logits
        self.model = Decoder(shape, room)
        self.lm_head = nn.Linear(shape.hidden, shape.vocab, bias=False)

    def forward(self, ids_BT: Tensor, start: int) -> Tensor:
        x_BTD = self.model(ids_BT, start)
        return self.lm_head(x_BTD if self.all_logits else x_BTD[:, -1:])


def load(folder: Path, config: Mapping[str, Any], room: Room, *, all_logits: bool) -> Llama:
    """The model of ``folder``, its parameters as stored there, cast to the room's type."""
    shape = LlamaShape.read(config)
    weights = read_weights(folder, room.dtype, room.device)
    if shape.tied:
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    with torch.device("meta"):  # parameters get their memory from the file
        model = Llama(shape, room, all_logits=all_logits)
    assign(model, weights, folder)
    return model
