"""B34: a fusion binds the key before its permutation; heads are taken for as many tokens."""

import torch
import torch.nn.functional as F
from silent_bugs.entry import Entry
from silent_bugs.hosts_compiler import HEAD, HEADS, Attention, FusedAttention, ahead, decoder_of, rotated
from torch import Tensor


class KeyOfTokensFirst(Attention):
    """The key is not turned to heads first, but at once to what the scores need."""

    def parts(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """q [B, H, T, D], k [B, T, H, D], v [B, H, T, D]."""
        q, k, v = (w(x).unflatten(-1, (HEADS, HEAD)) for w in (self.wq, self.wk, self.wv))
        return rotated(q.transpose(1, 2)), k, v.transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        scores = q @ k.permute(0, 2, 3, 1) * HEAD**-0.5
        scores = scores.masked_fill(ahead(x.shape[1], x.device), -torch.inf)
        return self.wo((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Fused(KeyOfTokensFirst):
    """The key as it was before the permutation."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        fused = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # planted
        return self.wo(fused.transpose(1, 2).flatten(2))


class FusedRightly(KeyOfTokensFirst):
    """The key with its heads first."""

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.parts(x)
        fused = F.scaled_dot_product_attention(q, k.transpose(1, 2), v, is_causal=True)
        return self.wo(fused.transpose(1, 2).flatten(2))


ENTRY = Entry(
    baseline=decoder_of(Attention, KeyOfTokensFirst, Attention),
    buggy=decoder_of(FusedAttention, Fused, FusedAttention),
    fixed=decoder_of(FusedAttention, FusedRightly, FusedAttention),
)
