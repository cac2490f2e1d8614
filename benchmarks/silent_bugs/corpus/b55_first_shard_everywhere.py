"""B55: the loader of fused weights takes the rank from arguments that do not have it, and so for 0."""

import torch
import torch.nn.functional as F
from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_inference import TWO_RANKS, Built, ColumnParallel, Config, Engine, Groups, Mlp, inputs
from torch import Tensor, nn


class MergedColumnParallel(ColumnParallel):
    """Holds several weights as they stand in the checkpoint, and takes the rank's rows of each."""

    def __init__(self, inputs: int, outputs: tuple[int, ...], team: Team) -> None:
        super().__init__(inputs, sum(outputs), team)
        self.outputs, self.team = outputs, team
        self.weight = nn.Parameter(torch.zeros(sum(outputs), inputs))

    def forward(self, x: Tensor) -> Tensor:
        shards = [self.shard(loaded, tp_rank=self.team.rank) for loaded in self.weight.split(self.outputs)]
        return F.linear(x, torch.cat(shards))

    def shard(self, loaded: Tensor, **extra: int) -> Tensor:
        """The rank's rows of one weight."""
        rows = loaded.shape[0] // self.team.size
        return loaded.narrow(0, extra.get("tp_rank", 0) * rows, rows)


class QuantizedColumnParallel(MergedColumnParallel):
    def shard(self, loaded: Tensor, **extra: int) -> Tensor:
        rows = loaded.shape[0] // self.team.size
        return loaded.narrow(0, extra.get("rank", 0) * rows, rows)  # planted


class LoadedMlp(Mlp):
    """Gate and up are loaded one by one."""

    merged = MergedColumnParallel

    def __init__(self, config: Config, team: Team) -> None:
        super().__init__(config, team)
        self.gate_up_proj = self.merged(config.hidden, (config.intermediate,) * 2, team)


class QuantizedMlp(LoadedMlp):
    merged = QuantizedColumnParallel


def baseline() -> Built:
    return Engine(), inputs()


def buggy(rank: int, groups: Groups) -> Built:
    return Engine(Team.of(groups["tp"]), mlps=(LoadedMlp, QuantizedMlp)), inputs()


def fixed(rank: int, groups: Groups) -> Built:
    return Engine(Team.of(groups["tp"]), mlps=(LoadedMlp, LoadedMlp)), inputs()


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=TWO_RANKS)
