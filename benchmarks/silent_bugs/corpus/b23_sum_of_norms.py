"""B23: the norm of a pending sum, computed as the sum of the norms of its parts."""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import Decoder, Mlp, ids_of
from silent_bugs.hosts.ranks import Team
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from scalify.ir.mesh import Mesh


class UnitMlp(Mlp):
    """What it puts out has length one."""

    def forward(self, x: Tensor) -> Tensor:
        pending = F.linear(F.silu(self.gate_proj(x)) * self.up_proj(x), self.down_proj.weight)
        return self.of_length_one(pending) * self.down_proj.bias

    def of_length_one(self, pending: Tensor) -> Tensor:
        """Of what is still to be summed over ranks."""
        y = self.team.summed(pending)
        return y / torch.linalg.vector_norm(y, dim=-1, keepdim=True)


class BuggyMlp(UnitMlp):
    def of_length_one(self, pending: Tensor) -> Tensor:
        length = torch.linalg.vector_norm(pending, dim=-1, keepdim=True)  # planted
        return self.team.summed(pending) / self.team.summed(length)


def baseline() -> tuple[nn.Module, tuple[Tensor]]:
    return Decoder(mlps=(UnitMlp, UnitMlp)), (ids_of(),)


def buggy(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor]]:
    return Decoder(Team.of(groups["tp"]), mlps=(BuggyMlp, UnitMlp)), (ids_of(),)


def fixed(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor]]:
    return Decoder(Team.of(groups["tp"]), mlps=(UnitMlp, UnitMlp)), (ids_of(),)


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("tp", 2),)))
