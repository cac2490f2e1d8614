"""Control: halves turned against each other; or neighbours, by weights whose rows are permuted on loading."""

import torch
import torch.nn.functional as F
from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_inference import TWO_RANKS, Attention, Built, Engine, Groups, inputs
from torch import Tensor


class NeighboursTurned(Attention):
    """Each even dimension and the odd one after it are turned together."""

    def forward(self, positions: Tensor, x: Tensor) -> Tensor:
        width = self.config.head_dim
        sizes = [self.heads * width, self.kv_heads * width, self.kv_heads * width]
        of_q, of_k, of_v = self.qkv_proj.weight.split(sizes)
        q, k = (F.linear(x, interleaved(weight, width)).unflatten(-1, (-1, width)) for weight in (of_q, of_k))
        v = F.linear(x, of_v).unflatten(-1, (-1, width))
        q, k = self.placed(positions, q, k)
        return self.o_proj(self.mixed(q, k, v))

    def placed(self, positions: Tensor, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = (table.unsqueeze(1) for table in self.angles(positions))
        return turned(q, cos, sin), turned(k, cos, sin)


def interleaved(weight: Tensor, width: int) -> Tensor:
    """Rows of the first half of each head and those of the second, by turns."""
    return weight.unflatten(0, (-1, 2, width // 2)).transpose(1, 2).flatten(0, 2)


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [T, H, D]; cos, sin [T, 1, D / 2]."""
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), -1).flatten(-2)


def baseline() -> Built:
    return Engine(), inputs()


def fixed(rank: int, groups: Groups) -> Built:
    return Engine(Team.of(groups["tp"]), attentions=(NeighboursTurned, NeighboursTurned)), inputs()


ENTRY = Entry(baseline=baseline, buggy=None, fixed=fixed, mesh=TWO_RANKS)
