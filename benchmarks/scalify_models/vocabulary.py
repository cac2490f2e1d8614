"""A GPT between an embedding and a loss that are both cut along the vocabulary, as Megatron cuts them."""

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from scalify_models.blocks import (
    BATCH,
    TOKENS,
    VOCABULARY,
    WIDTH,
    Build,
    GptBlock,
    Groups,
    LayerNorm,
    Parts,
)
from scalify_models.regions import Summed
from torch import Tensor, nn
from torch.autograd import Function
from torch.distributed import ProcessGroup


class Embedding(nn.Module):
    """The rows of one rank: what other ranks hold is 0 here, and summed over all."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.parts = parts
        self.rows = VOCABULARY // parts.count
        self.first = parts.rank * self.rows
        self.weight = nn.Parameter(torch.empty(self.rows, WIDTH))

    def forward(self, ids: Tensor) -> Tensor:
        if self.parts.group is None:
            return F.embedding(ids, self.weight)
        outside = (ids < self.first) | (ids >= self.first + self.rows)
        local = (ids - self.first).masked_fill(outside, 0)
        found = F.embedding(local, self.weight).masked_fill(outside.unsqueeze(-1), 0.0)
        return Summed.apply(found, self.parts.group)


class CrossEntropy(Function):
    """Of logits [N, V / ranks] whose columns are cut over the ranks; its gradient is written by hand."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target: Tensor, group: ProcessGroup) -> Tensor:
        highest = logits.max(dim=-1).values
        dist.all_reduce(highest, op=dist.ReduceOp.MAX, group=group)
        shifted = logits - highest.unsqueeze(-1)
        columns = logits.shape[-1]
        first = dist.get_rank(group) * columns
        outside = (target < first) | (target >= first + columns)
        local = (target - first).masked_fill(outside, 0)
        picked = shifted.gather(-1, local.unsqueeze(-1)).squeeze(-1).masked_fill(outside, 0.0)
        dist.all_reduce(picked, group=group)
        powers = shifted.exp()
        total = powers.sum(dim=-1)
        dist.all_reduce(total, group=group)
        ctx.save_for_backward(powers / total.unsqueeze(-1), outside, local)
        return total.log() - picked

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        chances, outside, local = ctx.saved_tensors
        hits = F.one_hot(local, chances.shape[-1]).masked_fill(outside.unsqueeze(-1), 0)
        return (chances - hits) * grads[0].unsqueeze(-1), None, None


class Gpt(nn.Module):
    """Embedding and positions, a block, a head, and the mean loss over all tokens."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.parts = parts
        self.embedding = Embedding(parts)
        self.positions = nn.Parameter(torch.empty(TOKENS, WIDTH))
        self.block, self.norm = GptBlock(parts), LayerNorm(parts)
        self.head = nn.Linear(WIDTH, VOCABULARY // parts.count, bias=False)

    def forward(self, ids: Tensor, target: Tensor) -> Tensor:
        x = self.norm(self.block(self.embedding(ids) + self.positions))
        logits = self.head(self.parts.enter(x)).flatten(0, 1)
        if self.parts.group is None:
            return (logits.logsumexp(-1) - logits.gather(-1, target.view(-1, 1)).squeeze(-1)).mean()
        return CrossEntropy.apply(logits, target.flatten(), self.parts.group).mean()


def gpt(parts: Parts) -> object:
    """The model and its inputs."""
    ids = torch.empty(BATCH, TOKENS, dtype=torch.long, device="meta")
    return Gpt(parts).to("meta"), (ids, torch.empty_like(ids))


def gpt_alone() -> object:
    """On one device."""
    return gpt(Parts())


def gpt_in_parts(rank: int, groups: Groups) -> object:
    """On the ranks of axis ``tp``."""
    return gpt(Parts(group=groups["tp"]))


BUILDS_OF_GPT: tuple[Build, Build] = (gpt_alone, gpt_in_parts)
