"""GPT-2 in plain PyTorch.

Letters: B batch, T tokens of this call, S positions up to and with them, D hidden, N heads, H head size,
V vocabulary.
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

TANH_GELU = ("gelu_new", "gelu_pytorch_tanh")  # one function under two names
PREFIX = "transformer."
TRANSPOSED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")  # stored [in, out]
MASKS = (".attn.bias", ".attn.masked_bias")  # some checkpoints carry the causal mask along


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpt2Shape:
    """The numbers of ``config.json`` that determine the model."""

    vocab: int
    hidden: int
    inner: int
    layers: int
    heads: int
    positions: int
    eps: float

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> "Gpt2Shape":
        """From a configuration in Hugging Face format, where absent keys have that format's defaults."""
        activation = config.get("activation_function", "gelu_new")
        if activation not in TANH_GELU or not config.get("scale_attn_weights", True):
            raise MagnetonError(
                f"the torch system's GPT-2 has no activation {activation!r} or unscaled attention",
                hint="use the transformers system",
            )
        return cls(
            vocab=config["vocab_size"],
            hidden=config["n_embd"],
            inner=config.get("n_inner") or 4 * config["n_embd"],
            layers=config["n_layer"],
            heads=config["n_head"],
            positions=config["n_positions"],
            eps=config.get("layer_norm_epsilon", 1e-5),
        )


class Attention(nn.Module):
    def __init__(self, shape: Gpt2Shape, room: Room) -> None:
        super().__init__()
        self.heads = shape.heads
        self.c_attn = nn.Linear(shape.hidden, 3 * shape.hidden)
        self.c_proj = nn.Linear(shape.hidden, shape.hidden)
        self.cache = KeyValueCache(shape.heads, shape.hidden // shape.heads, room)

    def forward(self, x_BTD: Tensor, mask_TS: Tensor | None, start: int) -> Tensor:
        qkv_BT3NH = self.c_attn(x_BTD).unflatten(-1, (3, self.heads, -1))
        q_BNTH, k_BNTH, v_BNTH = qkv_BT3NH.permute(2, 0, 3, 1, 4).unbind()
        k_BNSH, v_BNSH = self.cache(k_BNTH, v_BNTH, start)
        mixed_BNTH = F.scaled_dot_product_attention(
            q_BNTH, k_BNSH, v_BNSH, attn_mask=mask_TS, is_causal=start == 0
        )
        return self.c_proj(mixed_BNTH.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, shape: Gpt2Shape) -> None:
        super().__init__()
        self.c_fc = nn.Linear(shape.hidden, shape.inner)
        self.c_proj = nn.Linear(shape.inner, shape.hidden)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.c_proj(F.gelu(self.c_fc(x_BTD), approximate="tanh"))


class Layer(nn.Module):
    def __init__(self, shape: Gpt2Shape, room: Room) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(shape.hidden, eps=shape.eps)
        self.attn = Attention(shape, room)
        self.ln_2 = nn.LayerNorm(shape.hidden, eps=shape.eps)
        self.mlp = Mlp(shape)

    def forward(self, x_BTD: Tensor, mask_TS: Tensor | None, start: int) -> Tensor:
        x_BTD = x_BTD + self.attn(self.ln_1(x_BTD), mask_TS, start)
        return x_BTD + self.mlp(self.ln_2(x_BTD))


class Decoder(nn.Module):
    def __init__(self, shape: Gpt2Shape, room: Room) -> None:
        super().__init__()
        self.wte = nn.Embedding(shape.vocab, shape.hidden)
        self.wpe = nn.Embedding(shape.positions, shape.hidden)
        self.h = nn.ModuleList(Layer(shape, room) for _ in range(shape.layers))
        self.ln_f = nn.LayerNorm(shape.hidden, eps=shape.eps)

    def forward(self, ids_BT: Tensor, start: int) -> Tensor:
        tokens = ids_BT.shape[1]
        mask_TS = causal_mask(tokens, start, ids_BT.device)
        x_BTD = self.wte(ids_BT) + self.wpe.weight[start : start + tokens]
        for layer in self.h:
            x_BTD = layer(x_BTD, mask_TS, start)
        return self.ln_f(x_BTD)


class Gpt2(nn.Module):
    """Logits of the last position [B, 1, V], or of all [B, T, V]; ``start`` tokens came before."""

    def __init__(self, shape: Gpt2Shape, room: Room, *, all_logits: bool = False) -> None:
        super().__init__()
        self.all_logits = all_logits
        self.transformer = Decoder(shape, room)
        self.lm_head = nn.Linear(shape.hidden, shape.vocab, bias=False)

    def forward(self, ids_BT: Tensor, start: int) -> Tensor:
        x_BTD = self.transformer(ids_BT, start)
        return self.lm_head(x_BTD if self.all_logits else x_BTD[:, -1:])


def load(folder: Path, config: Mapping[str, Any], room: Room, *, all_logits: bool) -> Gpt2:
    """The model of ``folder``, its parameters as stored there, cast to the room's type."""
    shape = Gpt2Shape.read(config)
    weights = _named(read_weights(folder, room.dtype, room.device))
    if "lm_head.weight" not in weights and f"{PREFIX}wte.weight" in weights:
        weights["lm_head.weight"] = weights[f"{PREFIX}wte.weight"]
    with torch.device("meta"):  # parameters get their memory from the file
        model = Gpt2(shape, room, all_logits=all_logits)
    assign(model, weights, folder)
    return model


def _named(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The checkpoint's tensors under this module's names, projections turned to [out, in]."""
    weights: dict[str, Tensor] = {}
    for name, tensor in stored.items():
        if name.endswith(MASKS):
            continue
        full = name if name.startswith((PREFIX, "lm_head.")) else PREFIX + name
        weights[full] = tensor.t().contiguous() if name.endswith(TRANSPOSED) else tensor
    return weights
