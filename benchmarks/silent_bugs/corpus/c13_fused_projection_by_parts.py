"""Control: queries, keys and values in one weight, of which every rank loads its rows of each part."""

import torch
import torch.nn.functional as F
from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_inference import TWO_RANKS, Attention, Built, Config, Engine, Groups, inputs
from torch import Tensor, nn


class LoadedAttention(Attention):
    """Holds the weight as it stands in the checkpoint."""

    def __init__(self, config: Config, team: Team) -> None:
        super().__init__(config, team)
        self.sizes = [heads * config.head_dim for heads in (config.heads, config.kv_heads, config.kv_heads)]
        self.qkv_proj.weight = nn.Parameter(torch.zeros(sum(self.sizes), config.hidden))

    def forward(self, positions: Tensor, x: Tensor) -> Tensor:
        width, ranks = self.config.head_dim, self.team.size
        parts = [part.chunk(ranks)[self.team.rank] for part in self.qkv_proj.weight.split(self.sizes)]
        projected = F.linear(x, torch.cat(parts)).split([size // ranks for size in self.sizes], -1)
        q, k, v = (part.unflatten(-1, (-1, width)) for part in projected)
        q, k = self.placed(positions, q, k)
        return self.o_proj(self.mixed(q, k, v))


def baseline() -> Built:
    return Engine(), inputs()


def fixed(rank: int, groups: Groups) -> Built:
    return Engine(Team.of(groups["tp"]), attentions=(LoadedAttention, Attention)), inputs()


ENTRY = Entry(baseline=baseline, buggy=None, fixed=fixed, mesh=TWO_RANKS)
