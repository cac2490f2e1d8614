"""B22: a number is added to every rank's part of a row-parallel product, and so counted once per rank."""

from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import Decoder, Mlp, ids_of
from silent_bugs.hosts.ranks import Team
from torch import Tensor, nn
from torch.distributed import ProcessGroup
from torch.nn import functional as F

from scalify.ir.mesh import Mesh

OFFSET = 0.125


class OffsetMlp(Mlp):
    """What it puts out is moved by a number, once the ranks' parts are summed."""

    def forward(self, x: Tensor) -> Tensor:
        wide = F.silu(self.gate_proj(x)) * self.up_proj(x)
        return self.down_proj(wide) + OFFSET


class BuggyMlp(Mlp):
    def forward(self, x: Tensor) -> Tensor:
        wide = F.silu(self.gate_proj(x)) * self.up_proj(x)
        pending = F.linear(wide, self.down_proj.weight) + OFFSET  # planted
        return self.team.summed(pending) + self.down_proj.bias


def baseline() -> tuple[nn.Module, tuple[Tensor]]:
    return Decoder(mlps=(OffsetMlp, OffsetMlp)), (ids_of(),)


def buggy(rank: int, groups: dict[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor]]:
    return Decoder(Team.of(groups["tp"]), mlps=(OffsetMlp, BuggyMlp)), (ids_of(),)


def fixed(rank: int, groups: dict[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor]]:
    return Decoder(Team.of(groups["tp"]), mlps=(OffsetMlp, OffsetMlp)), (ids_of(),)


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("tp", 2),)))
