"""B37: a tensor gets itself added in reverse; the fused kernel reads elements that are sums already."""

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts_compiler import TOKENS, WIDTH, Attention, FusedAttention, decoder_of
from torch import Tensor, nn


class BothWays(nn.Module):
    """A text read forward and backward at once, its first token replaced by a learned one; x [B, T, W]."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.first = nn.Parameter(torch.empty(1, WIDTH))

    def add_reversed(self, y: Tensor) -> Tensor:
        """y and its reverse; y [T, B, W]."""
        return y.add_(y.flip(0))

    def forward(self, x: Tensor) -> Tensor:
        y = self.into(x).tanh().transpose(0, 1).contiguous()
        y.index_put_((torch.zeros(1, dtype=torch.long, device=x.device),), self.first[:, None])
        y[1:].mul_(0.5)
        return self.out(self.add_reversed(y).transpose(0, 1))


class Fused(BothWays):
    """One loop over tokens."""

    def add_reversed(self, y: Tensor) -> Tensor:
        for token in range(TOKENS):
            y[token] += y[TOKENS - 1 - token]  # planted
        return y


class FusedRightly(BothWays):
    """All sums are made before the first one is written."""

    def add_reversed(self, y: Tensor) -> Tensor:
        return y.copy_(y + y.flip(0))


ENTRY = Entry(
    baseline=decoder_of(Attention, BothWays, Attention),
    buggy=decoder_of(FusedAttention, Fused, FusedAttention),
    fixed=decoder_of(FusedAttention, FusedRightly, FusedAttention),
)
