"""B53: layers alternate between a sliding window and the whole text; the backend is not told the window."""

from dataclasses import replace

import torch.nn.functional as F
from silent_bugs.entry import Entry
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts_inference import CONFIG, TWO_RANKS, Attention, Built, Config, Engine, Groups, inputs
from torch import Tensor

WINDOWED = replace(CONFIG, window=4)


class GlobalAttention(Attention):
    """A layer that looks at the whole text."""

    def __init__(self, config: Config, team: Team) -> None:
        super().__init__(replace(config, window=0), team)


class FusedGlobalAttention(GlobalAttention):
    """With PyTorch's operator; heads come first."""

    def mixed(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (x.transpose(0, 1) for x in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return y.transpose(0, 1).flatten(1)


class UntoldAttention(Attention):
    def mixed(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (x.transpose(0, 1) for x in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)  # planted
        return y.transpose(0, 1).flatten(1)


def baseline() -> Built:
    return Engine(config=WINDOWED, attentions=(Attention, GlobalAttention)), inputs()


def buggy(rank: int, groups: Groups) -> Built:
    parts = (UntoldAttention, FusedGlobalAttention)
    return Engine(Team.of(groups["tp"]), WINDOWED, attentions=parts), inputs()


def fixed(rank: int, groups: Groups) -> Built:
    parts = (Attention, FusedGlobalAttention)
    return Engine(Team.of(groups["tp"]), WINDOWED, attentions=parts), inputs()


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=TWO_RANKS)
