"""B19: an all-to-all whose chunks do not stand before the batch: for two texts, their tokens interleave."""

from collections.abc import Mapping

import torch
import torch.distributed as dist
from silent_bugs.entry import Entry
from silent_bugs.hosts.data_parallel import SequenceAttention, SequenceDecoder
from silent_bugs.hosts.decoder import SIZE, Attention, Decoder, ids_of
from silent_bugs.hosts.ranks import Team
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from scalify.ir.mesh import Mesh


class HeadwiseAttention(SequenceAttention):
    """Before attention tokens are exchanged for heads, and back afterwards."""

    def mixed(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """q, k, v [B, heads, T / ranks, D]."""
        q, k, v = (self.tokens_for_heads(x.transpose(1, 2)).transpose(1, 2) for x in (q, k, v))
        return self.heads_for_tokens(Attention.mixed(self, q, k, v).transpose(1, 2)).transpose(1, 2)

    def tokens_for_heads(self, x: Tensor) -> Tensor:
        """x [B, T / ranks, heads, D] -> [B, T, heads / ranks, D]."""
        batch, tokens, heads, width = x.shape
        ranks = self.sequence.size
        chunks = x.reshape(batch * tokens, ranks, heads // ranks, width).transpose(0, 1).contiguous()
        return self.in_order(self.sent(chunks), batch, tokens)

    def in_order(self, arrived: Tensor, batch: int, tokens: int) -> Tensor:
        """What arrived, by source: [ranks, B * T / ranks, ...] -> [B, T, ...]."""
        by_text = arrived.unflatten(1, (batch, tokens)).transpose(0, 1)
        return by_text.reshape(batch, self.sequence.size * tokens, *arrived.shape[2:])

    def heads_for_tokens(self, x: Tensor) -> Tensor:
        """x [B, T, heads / ranks, D] -> [B, T / ranks, heads, D]."""
        chunks = x.unflatten(1, (self.sequence.size, -1)).transpose(0, 1).contiguous()
        return self.sent(chunks).permute(1, 2, 0, 3, 4).flatten(2, 3)

    def sent(self, chunks: Tensor) -> Tensor:
        """The first of the chunks to the first rank, and so on."""
        arrived = torch.empty_like(chunks)
        dist.all_to_all_single(arrived, chunks, group=self.sequence.group)
        return arrived


class BuggyAttention(HeadwiseAttention):
    def in_order(self, arrived: Tensor, batch: int, tokens: int) -> Tensor:
        return arrived.reshape(batch, self.sequence.size * tokens, *arrived.shape[2:])  # planted


def _on_ranks(attention: type[SequenceAttention], group: ProcessGroup) -> tuple[nn.Module, tuple[Tensor]]:
    model = SequenceDecoder(Team.of(group), attentions=(HeadwiseAttention, attention))
    return model, (ids_of(tokens=SIZE.tokens // group.size()),)


def baseline() -> tuple[nn.Module, tuple[Tensor]]:
    return Decoder(), (ids_of(),)


def buggy(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor]]:
    return _on_ranks(BuggyAttention, groups["sp"])


def fixed(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor]]:
    return _on_ranks(HeadwiseAttention, groups["sp"])


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("sp", 2),)))
