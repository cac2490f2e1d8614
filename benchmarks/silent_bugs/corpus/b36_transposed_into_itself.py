"""B36: a square of memory gets its own transpose; the fused kernel reads rows that it has overwritten."""

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts_compiler import TOKENS, WIDTH, Attention, FusedAttention, decoder_of
from torch import Tensor, nn


class Pairs(nn.Module):
    """What each token says of each other, handed back to the other in place; x [B, T, W]."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right, self.value = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.decay = nn.Parameter(torch.empty(TOKENS))

    def turn(self, pairs: Tensor) -> Tensor:
        """The transpose, in the same memory."""
        return pairs.copy_(pairs.transpose(1, 2) * 1.0)

    def forward(self, x: Tensor) -> Tensor:
        pairs = self.left(x) @ self.right(x).transpose(1, 2)
        pairs.mul_(WIDTH**-0.5)
        pairs[:, 0].zero_()
        pairs.add_(self.decay)
        return self.turn(pairs).softmax(-1) @ self.value(x)


class Fused(Pairs):
    """Reading and writing in one loop over rows."""

    def turn(self, pairs: Tensor) -> Tensor:
        for row in range(TOKENS):
            pairs[:, row] = pairs[:, :, row] * 1.0  # planted
        return pairs


class FusedRightly(Pairs):
    """What is read is what was there."""

    def turn(self, pairs: Tensor) -> Tensor:
        kept = pairs.clone()
        for row in range(TOKENS):
            pairs[:, row] = kept[:, :, row] * 1.0
        return pairs


ENTRY = Entry(
    baseline=decoder_of(Attention, Pairs, Attention),
    buggy=decoder_of(FusedAttention, Fused, FusedAttention),
    fixed=decoder_of(FusedAttention, FusedRightly, FusedAttention),
)
