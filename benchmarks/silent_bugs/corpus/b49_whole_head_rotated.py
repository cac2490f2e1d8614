"""B49: a kernel that norms and rotates queries and keys is not told how much of the head turns."""

from dataclasses import replace
from pathlib import Path

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_inference import (
    CONFIG,
    TWO_RANKS,
    Attention,
    Built,
    Config,
    Engine,
    Groups,
    inputs,
    normed,
    rotated,
)
from silent_bugs.kernels import norm_and_rotate
from torch import Tensor, nn

PARTIAL = replace(CONFIG, rotary_dim=4)


class NormedAttention(Attention):
    """Queries and keys are normed head by head; the first half of every head turns, by the first angles."""

    def __init__(self, config: Config, team: Team) -> None:
        super().__init__(replace(config, rotary_dim=config.head_dim), team)
        self.rotary_dim = config.rotary_dim
        self.q_norm = nn.Parameter(torch.ones(config.head_dim))
        self.k_norm = nn.Parameter(torch.ones(config.head_dim))

    def placed(self, positions: Tensor, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = (angles[:, : self.rotary_dim // 2] for angles in self.angles(positions))
        return rotated(normed(q, self.q_norm), cos, sin), rotated(normed(k, self.k_norm), cos, sin)


class FusedAttention(NormedAttention):
    """With the kernel."""

    def placed(self, positions: Tensor, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = self.angles(positions)
        return (
            norm_and_rotate(q, self.q_norm, cos, sin, self.rotary_dim),
            norm_and_rotate(k, self.k_norm, cos, sin, self.rotary_dim),
        )


class UntoldAttention(NormedAttention):
    def placed(self, positions: Tensor, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = self.angles(positions)
        return (
            norm_and_rotate(q, self.q_norm, cos, sin),  # planted
            norm_and_rotate(k, self.k_norm, cos, sin),  # planted
        )


def baseline() -> Built:
    return Engine(config=PARTIAL, attentions=(NormedAttention, NormedAttention)), inputs()


def buggy(rank: int, groups: Groups) -> Built:
    return Engine(Team.of(groups["tp"]), PARTIAL, (FusedAttention, UntoldAttention)), inputs()


def fixed(rank: int, groups: Groups) -> Built:
    return Engine(Team.of(groups["tp"]), PARTIAL, (FusedAttention, FusedAttention)), inputs()


ENTRY = Entry(
    baseline=baseline,
    buggy=buggy,
    fixed=fixed,
    mesh=TWO_RANKS,
    ops=Path(__file__).parents[1] / "kernel_references.py",
)
