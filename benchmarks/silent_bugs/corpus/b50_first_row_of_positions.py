"""B50: a kernel for positions of time, height and width uses those of time for all sections of the head."""

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_inference import CONFIG, TWO_RANKS, Attention, Built, Engine, Groups, inputs
from torch import Tensor

SECTIONS = (2, 1, 1)
"""How many angles turn by time, height and width."""


class SectionedAttention(Attention):
    """Each section of the angles has positions of its own, as the model defines it."""

    def angles(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """positions [3, T]."""
        found = (self.table(name)[positions] for name in ("cos_cache", "sin_cache"))
        cos, sin = (
            torch.cat([part[row] for row, part in enumerate(table.split(SECTIONS, -1))], -1)
            for table in found
        )
        return cos, sin


class FusedAttention(SectionedAttention):
    """As a kernel does it: the row is chosen angle by angle."""

    def angles(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        rows = [row for row, size in enumerate(SECTIONS) for _ in range(size)]
        cos, sin = (
            torch.stack([table[:, angle][positions[row]] for angle, row in enumerate(rows)], -1)
            for table in (self.table("cos_cache"), self.table("sin_cache"))
        )
        return cos, sin


class FirstRow(SectionedAttention):
    def angles(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        time = positions[0]  # planted
        return self.table("cos_cache")[time], self.table("sin_cache")[time]


def sectioned() -> tuple[Tensor, Tensor]:
    ids, _ = inputs()
    return ids, torch.zeros(3, CONFIG.tokens, dtype=torch.long)


def baseline() -> Built:
    return Engine(attentions=(SectionedAttention, SectionedAttention)), sectioned()


def buggy(rank: int, groups: Groups) -> Built:
    return Engine(Team.of(groups["tp"]), attentions=(FusedAttention, FirstRow)), sectioned()


def fixed(rank: int, groups: Groups) -> Built:
    return Engine(Team.of(groups["tp"]), attentions=(FusedAttention, FusedAttention)), sectioned()


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=TWO_RANKS)
