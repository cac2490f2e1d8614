"""Attention whose sequence is cut over ranks: keys and values go round, and parts are joined by their weight.

Every rank has a part of the queries. With each part of the keys it gets an answer and the logarithm of the
sum of its weights; two answers are joined by how much of the weight each has.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from scalify_models.blocks import BATCH, HEAD, HEADS, TOKENS, Build, Groups
from scalify_models.regions import Copied, Gathered, Passed, Summed
from torch import Tensor, nn
from torch.distributed import ProcessGroup


class Ring(nn.Module):
    """Attention over the whole sequence, of which the ranks of a group hold parts, and a loss."""

    def __init__(self, group: ProcessGroup | None) -> None:
        super().__init__()
        self.group = group
        self.q, self.k, self.v = (nn.Parameter(torch.empty(HEADS * HEAD, HEADS * HEAD)) for _ in range(3))

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """x [B, T / ranks, W] -> a number."""
        weights: list[Tensor] = [self.q, self.k, self.v]
        if self.group is not None:
            weights = [Copied.apply(weight, self.group) for weight in weights]
        q, k, v = ((x @ weight.t()).unflatten(-1, (-1, HEAD)).transpose(1, 2) for weight in weights)
        y = self._attended(q, k, v).transpose(1, 2).flatten(2)
        loss = (y - target).pow(2).sum()
        return loss if self.group is None else Summed.apply(loss, self.group)

    def _attended(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        count = 1 if self.group is None else self.group.size()
        y, total = _part(q, k, v)
        for _ in range(1, count):
            k, v = Passed.apply(k, self.group), Passed.apply(v, self.group)
            other, weight = _part(q, k, v)
            joined = torch.logaddexp(total, weight)
            y = y * (total - joined).exp() + other * (weight - joined).exp()
            total = joined
        return y


class Gathering(Ring):
    """The same with all keys and values on every rank, and a token sees only those before it."""

    def _attended(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        first = 0
        if self.group is not None:
            first = dist.get_rank(self.group) * q.shape[2]
            k, v = Gathered.apply(k, 2, self.group), Gathered.apply(v, 2, self.group)
        rows = torch.arange(first, first + q.shape[2], device=q.device)
        seen = torch.arange(k.shape[2], device=q.device) <= rows.unsqueeze(-1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)


def _part(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The answer to queries by some of the keys, and how much these weigh."""
    scores = q @ k.transpose(-1, -2) * HEAD**-0.5
    weight = scores.logsumexp(-1, keepdim=True)
    return (scores - weight).exp() @ v, weight


def _whole(kind: type[Ring], group: ProcessGroup | None) -> object:
    tokens = TOKENS if group is None else TOKENS // group.size()
    with torch.device("meta"):
        x = torch.empty(BATCH, tokens, HEADS * HEAD, requires_grad=True)
        return kind(group), (x, torch.empty(BATCH, tokens, HEADS * HEAD))


def context_alone(kind: type[Ring]) -> Build:
    """On one device."""
    return lambda: _whole(kind, None)


def context_in_parts(kind: type[Ring]) -> Build:
    """On the ranks of axis ``cp``."""

    def build(rank: int, groups: Groups) -> object:
        return _whole(kind, groups["cp"])

    return build
