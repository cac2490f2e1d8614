"""B66: of a key head that all ranks hold, gradients of weights are summed over ranks, those of biases not."""

import torch
import torch.nn.functional as F
from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import Attention, Decoder, Size
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_controls import Trained, ids_and_labels
from silent_bugs.hosts_inference import TWO_RANKS, Built, Groups
from torch import Tensor, nn


class SharedKeyProjection(nn.Module):
    """The one head of keys (or values): the same on all ranks, whose queries each use it in their own way."""

    def __init__(self, size: Size, team: Team) -> None:
        super().__init__()
        self.team = team
        self.weight = nn.Parameter(torch.zeros(size.head_dim, size.hidden))
        self.bias = nn.Parameter(torch.zeros(size.head_dim))

    def forward(self, x: Tensor) -> Tensor:
        """x [B, T, H] -> [B, T, D]."""
        return F.linear(self.team.shared(x), self.team.shared(self.weight), self.team.shared(self.bias))


class PartlySummedProjection(SharedKeyProjection):
    def forward(self, x: Tensor) -> Tensor:
        projected = F.linear(self.team.shared(x), self.team.shared(self.weight))
        return projected + self.bias  # planted


class SharedKeyAttention(Attention):
    """One head of keys and values for all heads of queries."""

    projection: type[SharedKeyProjection] = SharedKeyProjection

    def __init__(self, size: Size, team: Team) -> None:
        super().__init__(size, team)
        self.kv_heads = 1
        self.k_proj = self.projection(size, team)
        self.v_proj = SharedKeyProjection(size, team)


class PartlySummedAttention(SharedKeyAttention):
    projection = PartlySummedProjection


def baseline() -> Built:
    return Trained(Decoder(attentions=(SharedKeyAttention, SharedKeyAttention))), ids_and_labels()


def buggy(rank: int, groups: Groups) -> Built:
    return Trained(
        Decoder(Team.of(groups["tp"]), attentions=(PartlySummedAttention, SharedKeyAttention))
    ), ids_and_labels()


def fixed(rank: int, groups: Groups) -> Built:
    return Trained(
        Decoder(Team.of(groups["tp"]), attentions=(SharedKeyAttention, SharedKeyAttention))
    ), ids_and_labels()


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=TWO_RANKS, backward=True)
