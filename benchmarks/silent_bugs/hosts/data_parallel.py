"""The decoder on ranks that each have some of the texts, or some of every text's tokens."""

from collections.abc import Sequence

import torch
from silent_bugs.hosts.decoder import SIZE, Attention, Decoder, Mlp, Size, angles
from silent_bugs.hosts.ranks import Team
from torch import Tensor


class SequenceDecoder(Decoder):
    """Every rank has all weights and some of the tokens of every text, in the order of the ranks."""

    def __init__(
        self,
        sequence: Team,
        size: Size = SIZE,
        attentions: Sequence[type["SequenceAttention"]] = (),
        mlps: Sequence[type[Mlp]] = (Mlp, Mlp),
    ) -> None:
        super().__init__(
            size=size, attentions=attentions or (SequenceAttention, SequenceAttention), mlps=mlps
        )
        self.sequence = sequence
        for module in self.modules():
            if isinstance(module, SequenceAttention):
                module.sequence = sequence

    def hidden(self, ids: Tensor) -> Tensor:
        """ids [B, T / ranks] -> [B, T / ranks, H]."""
        x = self.embed_tokens(ids)
        tokens = ids.shape[1]
        positions = torch.arange(tokens, device=ids.device) + self.sequence.rank * tokens
        cos, sin = angles(positions, self.size.head_dim)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x)


class SequenceAttention(Attention):
    """Queries of the rank's own tokens; keys and values are gathered from all ranks."""

    sequence: Team

    def mixed(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Values by the similarity of own queries and all keys."""
        k, v = (self.sequence.gathered(x, 2) for x in (k, v))
        k, v = (x.repeat_interleave(self.heads // self.kv_heads, 1) for x in (k, v))
        scores = q @ k.transpose(-2, -1) * self.size.head_dim**-0.5
        own, tokens = scores.shape[-2:]
        places = torch.arange(own, device=q.device) + self.sequence.rank * own
        future = torch.arange(tokens, device=q.device) > places.unsqueeze(-1)
        return scores.masked_fill(future, -torch.inf).softmax(-1) @ v
