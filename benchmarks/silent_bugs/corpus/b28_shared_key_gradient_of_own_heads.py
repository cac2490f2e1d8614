"""B28: the rotary part of the key is one for all heads; its gradient is that of a rank's own heads."""

import torch
import torch.nn.functional as F
from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import Attention, Column, Size, rotated
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_training import TWO_TENSOR_RANKS, Built, Groups, trained
from torch import Tensor, nn


class LatentAttention(Attention):
    """Keys and values come from a narrow latent; a part of the key carries positions, for all heads alike."""

    def __init__(self, size: Size, team: Team) -> None:
        super().__init__(size, team)
        self.kv_heads = self.heads
        self.latent = nn.Parameter(torch.zeros(size.hidden // 2, size.hidden))
        self.rotary = nn.Parameter(torch.zeros(size.head_dim, size.hidden))
        self.q_proj = Column(size.hidden, 2 * size.hidden, team)
        self.k_proj, self.v_proj = (Column(size.hidden // 2, size.hidden, team) for _ in range(2))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        latent = F.linear(x, self.latent)
        q, q_turned = self.queries(x).chunk(2, -1)
        k, k_turned = self.keys(latent), rotated(F.linear(x, self.rotary), cos, sin).unsqueeze(1)
        by_place = rotated(q_turned, cos, sin) @ self.for_heads(k_turned).transpose(-2, -1)
        scores = (q @ k.transpose(-2, -1) + by_place) * (2 * self.size.head_dim) ** -0.5
        past = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).tril()
        y = scores.masked_fill(~past, -torch.inf).softmax(-1) @ self.values(latent)
        return self.o_proj(y.transpose(1, 2).flatten(2))

    def for_heads(self, key: Tensor) -> Tensor:
        """key [B, 1, T, D], which all ranks hold -> [B, heads, T, D]."""
        return self.team.shared(key).expand(-1, self.heads, -1, -1)


class BuggyAttention(LatentAttention):
    def for_heads(self, key: Tensor) -> Tensor:
        return key.expand(-1, self.heads, -1, -1)  # planted


def baseline() -> Built:
    return trained(Team(), (LatentAttention, LatentAttention))


def buggy(rank: int, groups: Groups) -> Built:
    return trained(Team.of(groups["tp"]), (LatentAttention, BuggyAttention))


def fixed(rank: int, groups: Groups) -> Built:
    return trained(Team.of(groups["tp"]), (LatentAttention, LatentAttention))


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=TWO_TENSOR_RANKS, backward=True)
