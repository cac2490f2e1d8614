"""B49: a kernel that norms and rotates queries and keys is not told how much of the head turns."""

from dataclasses import replace

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


def norm_and_rotate(
    x: Tensor, gain: Tensor, cos: Tensor, sin: Tensor, rotary_dim: int | None = None
) -> Tensor:
    """The kernel: x [T, H, D], tables [T, D / 2]; all of the head turns if nothing else is said."""
    half = (rotary_dim or x.shape[-1]) // 2
    scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
    x = x * scale * gain
    cos, sin = cos[:, None, :half], sin[:, None, :half]
    first, second, rest = x.split([half, half, x.shape[-1] - 2 * half], -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin, rest), -1)


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


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=TWO_RANKS)
