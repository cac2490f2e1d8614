"""Control: gate and up rows by turns in one weight, of which every rank has a block; each splits its own."""

from dataclasses import dataclass

import torch.nn.functional as F
from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_inference import TWO_RANKS, Built, Engine, Groups, Mlp, inputs
from torch import Tensor


@dataclass(frozen=True, slots=True)
class _Halves:
    gate: Tensor
    up: Tensor


class InterleavedMlp(Mlp):
    """Every other output is one of the gate."""

    def forward(self, x: Tensor) -> Tensor:
        both = self.gate_up_proj(x)
        halves = _Halves(both[..., ::2], both[..., 1::2])
        return self.down_proj(F.silu(halves.gate) * halves.up)


class PairedMlp(Mlp):
    """The same, as pairs."""

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up_proj(x).unflatten(-1, (-1, 2)).unbind(-1)
        return self.down_proj(F.silu(gate) * up)


def baseline() -> Built:
    return Engine(mlps=(InterleavedMlp, InterleavedMlp)), inputs()


def fixed(rank: int, groups: Groups) -> Built:
    return Engine(Team.of(groups["tp"]), mlps=(PairedMlp, InterleavedMlp)), inputs()


ENTRY = Entry(baseline=baseline, buggy=None, fixed=fixed, mesh=TWO_RANKS)
