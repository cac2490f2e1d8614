"""B51: the kernel that attends is called with a soft cap of 0, and scores are not capped."""

from dataclasses import replace

from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_inference import CONFIG, TWO_RANKS, Attention, Built, Engine, Groups, attend, inputs
from torch import Tensor

CAPPED = replace(CONFIG, soft_cap=30.0)


class PagedAttention(Attention):
    """Calls the kernel itself, with the model's cap."""

    def mixed(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attend(q, k, v, scale=self.config.head_dim**-0.5, soft_cap=self.config.soft_cap)


class UncappedAttention(Attention):
    def mixed(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attend(q, k, v, scale=self.config.head_dim**-0.5, soft_cap=0.0)  # planted


def baseline() -> Built:
    return Engine(config=CAPPED), inputs()


def buggy(rank: int, groups: Groups) -> Built:
    return Engine(Team.of(groups["tp"]), CAPPED, attentions=(PagedAttention, UncappedAttention)), inputs()


def fixed(rank: int, groups: Groups) -> Built:
    return Engine(Team.of(groups["tp"]), CAPPED, attentions=(PagedAttention, PagedAttention)), inputs()


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=TWO_RANKS)
