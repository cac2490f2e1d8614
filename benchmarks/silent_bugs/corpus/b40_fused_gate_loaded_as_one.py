"""B40: gate and up are rows of one matrix, and the loader cuts it over ranks as if it were one weight."""

import torch
import torch.nn.functional as F
from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_inference import TWO_RANKS, Built, Config, Engine, Groups, Mlp, inputs, silu_and_mul
from torch import Tensor, nn


class LoadedMlp(Mlp):
    """Takes its part out of the matrix as it stands in the checkpoint."""

    def __init__(self, config: Config, team: Team) -> None:
        super().__init__(config, team)
        self.gate_up_proj.weight = nn.Parameter(torch.zeros(2 * config.intermediate, config.hidden))

    def own_rows(self, loaded: Tensor) -> Tensor:
        """The rank's rows of the gate, then those of the up projection."""
        own = self.config.intermediate // self.team.size
        gate, up = loaded.chunk(2)
        return torch.cat([part.narrow(0, self.team.rank * own, own) for part in (gate, up)])

    def forward(self, x: Tensor) -> Tensor:
        both = F.linear(x, self.own_rows(self.gate_up_proj.weight))
        return self.down_proj(silu_and_mul(both))


class LoadedAsOne(LoadedMlp):
    def own_rows(self, loaded: Tensor) -> Tensor:
        own = loaded.shape[0] // self.team.size
        return loaded.narrow(0, self.team.rank * own, own)  # planted


def baseline() -> Built:
    return Engine(), inputs()


def buggy(rank: int, groups: Groups) -> Built:
    return Engine(Team.of(groups["tp"]), mlps=(LoadedMlp, LoadedAsOne)), inputs()


def fixed(rank: int, groups: Groups) -> Built:
    return Engine(Team.of(groups["tp"]), mlps=(LoadedMlp, LoadedMlp)), inputs()


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=TWO_RANKS)
