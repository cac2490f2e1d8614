"""Control: attention to parts of the keys, merged by the sums of their weights; or to all of them at once."""

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import Attention, Decoder, ids_of
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_inference import TWO_RANKS, Built, Groups
from torch import Tensor

PARTS = 3


class SplitAttention(Attention):
    """As kernels for long texts do it: some keys at a time."""

    def mixed(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        k, v = (x.repeat_interleave(self.heads // self.kv_heads, 1) for x in (k, v))
        places = torch.arange(q.shape[-2], device=q.device)
        chunks = zip(k.chunk(PARTS, 2), v.chunk(PARTS, 2), places.chunk(PARTS), strict=True)
        found = [self.part(q, keys, values, places, own) for keys, values, own in chunks]
        most = torch.stack([top for top, _, _ in found]).amax(0)
        total = torch.stack([(top - most).exp() * weight for top, weight, _ in found]).sum(0)
        return torch.stack([(top - most).exp() * mixed for top, _, mixed in found]).sum(0) / total

    def part(
        self, q: Tensor, k: Tensor, v: Tensor, queries: Tensor, keys: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The largest score, the sum of weights relative to it, and the weighted values."""
        scores = q @ k.transpose(-2, -1) * self.size.head_dim**-0.5
        seen = keys <= queries.unsqueeze(-1)
        scores = scores.masked_fill(~seen, torch.finfo(scores.dtype).min)
        top = scores.amax(-1, keepdim=True)
        weights = (scores - top).exp()
        return top, weights.sum(-1, keepdim=True), weights @ v


def baseline() -> Built:
    return Decoder(), (ids_of(),)


def fixed(rank: int, groups: Groups) -> Built:
    return Decoder(Team.of(groups["tp"]), attentions=(SplitAttention, SplitAttention)), (ids_of(),)


ENTRY = Entry(baseline=baseline, buggy=None, fixed=fixed, mesh=TWO_RANKS)
