"""B13: the backward pass over a chunk of keys takes probabilities that sum to one within the chunk."""

# Autograd functions are called with what they like: PyTorch types none of it.
# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Mapping
from functools import reduce
from typing import Any

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts.data_parallel import SequenceAttention, SequenceDecoder
from silent_bugs.hosts.decoder import SIZE, Attention, Decoder, DecoderBody, ids_of
from silent_bugs.hosts.ranks import Team, all_gathered, all_reduced, reduce_scattered
from silent_bugs.hosts.training import gradients, token_losses
from torch import Tensor, nn
from torch.autograd import Function
from torch.distributed import ProcessGroup

from scalify.ir.mesh import Mesh


class ByChunk(Function):
    """Attention of own queries to everybody's keys, chunk by chunk, merged by their log-sum-exp."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, team: Team) -> Tensor:
        keys, values = (all_gathered(x, 2, team).chunk(team.size, 2) for x in (k, v))
        outs: list[Tensor] = []
        sums: list[Tensor] = []
        for key, value in zip(keys, values, strict=True):
            scores = q @ key.transpose(-2, -1)
            outs.append(scores.softmax(-1) @ value)
            sums.append(scores.logsumexp(-1, keepdim=True))
        whole = torch.cat(sums, -1).logsumexp(-1, keepdim=True)
        parts = [(own - whole).exp() * part for own, part in zip(sums, outs, strict=True)]
        ctx.team = team
        ctx.save_for_backward(q, k, v, whole)
        return reduce(torch.add, parts)

    @classmethod
    def probabilities(cls, scores: Tensor, whole: Tensor) -> Tensor:
        """How much each query attends to the keys of a chunk, of all that it attends to."""
        return (scores - whole).exp()

    @classmethod
    def backward(cls, ctx: Any, grad: Tensor) -> Any:
        q, k, v, whole = ctx.saved_tensors
        keys, values = (all_gathered(x, 2, ctx.team).chunk(ctx.team.size, 2) for x in (k, v))
        shares = [cls.probabilities(q @ key.transpose(-2, -1), whole) for key in keys]
        of_shares = [grad @ value.transpose(-2, -1) for value in values]
        pairs = list(zip(shares, of_shares, strict=True))
        spread = reduce(torch.add, [(share * of_share).sum(-1, keepdim=True) for share, of_share in pairs])
        of_scores = [(of_share - spread) * share for share, of_share in pairs]
        of_q = reduce(torch.add, [part @ key for part, key in zip(of_scores, keys, strict=True)])
        of_keys = [(q.transpose(-2, -1) @ part).transpose(-2, -1) for part in of_scores]
        of_values = [share.transpose(-2, -1) @ grad for share in shares]
        of_k, of_v = (reduce_scattered(torch.cat(parts, 2), 2, ctx.team) for parts in (of_keys, of_values))
        return of_q, of_k, of_v, None


class BuggyByChunk(ByChunk):
    @classmethod
    def probabilities(cls, scores: Tensor, whole: Tensor) -> Tensor:
        return (scores - scores.logsumexp(-1, keepdim=True)).exp()  # planted


class FullAttention(Attention):
    """Every token sees every other one."""

    def mixed(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = (x.repeat_interleave(self.heads // self.kv_heads, 1) for x in (k, v))
        return (q @ k.transpose(-2, -1) * self.size.head_dim**-0.5).softmax(-1) @ v


class GatheredAttention(SequenceAttention, FullAttention):
    """Own queries and everybody's keys at once."""

    def mixed(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = (self.sequence.gathered(x, 2) for x in (k, v))
        return FullAttention.mixed(self, q, k, v)


class ChunkedAttention(SequenceAttention):
    merged: type[ByChunk] = ByChunk

    def mixed(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = (x.repeat_interleave(self.heads // self.kv_heads, 1) for x in (k, v))
        return self.merged.apply(q * self.size.head_dim**-0.5, k, v, self.sequence)


class BuggyAttention(ChunkedAttention):
    merged = BuggyByChunk


class Step(nn.Module):
    """The loss by token, and gradients: both are summed over ranks."""

    def __init__(self, model: DecoderBody, sequence: Team) -> None:
        super().__init__()
        self.model, self.sequence = model, sequence

    def forward(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        """ids, labels [B, T / ranks] -> the loss, and the gradient of every parameter."""
        total = token_losses(self.model.logits(ids), labels).sum()
        grads = gradients(total, self.model)
        return tuple(all_reduced(x, self.sequence) for x in (total.detach(), *grads))


def inputs(ranks: int) -> tuple[Tensor, ...]:
    return ids_of(tokens=SIZE.tokens // ranks), ids_of(tokens=SIZE.tokens // ranks)


def _on_ranks(attention: type[ChunkedAttention], group: ProcessGroup) -> tuple[nn.Module, tuple[Tensor, ...]]:
    team = Team.of(group)
    model = SequenceDecoder(team, attentions=(attention, GatheredAttention))
    return Step(model, team), inputs(team.size)


def baseline() -> tuple[nn.Module, tuple[Tensor, ...]]:
    return Step(Decoder(attentions=(FullAttention, FullAttention)), Team()), inputs(1)


def buggy(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return _on_ranks(BuggyAttention, groups["cp"])


def fixed(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return _on_ranks(ChunkedAttention, groups["cp"])


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("cp", 2),)))
