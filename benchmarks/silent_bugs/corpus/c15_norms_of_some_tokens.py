"""Control: between layers every rank norms some of the tokens, and gathers all for projections."""

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import Column, Decoder, Layer, Norm, Row, angles, ids_of
from silent_bugs.hosts.ranks import Team, all_gathered, reduce_scattered
from silent_bugs.hosts_inference import TWO_RANKS, Built, Groups
from torch import Tensor
from torch.nn import functional as F


class GatheredColumn(Column):
    """Takes some of the tokens [B, T / ranks, I]."""

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(all_gathered(x, 1, self.team), self.weight)


class ScatteredRow(Row):
    """Gives some of the tokens [B, T / ranks, O]."""

    def forward(self, x: Tensor) -> Tensor:
        return reduce_scattered(F.linear(x, self.weight), 1, self.team) + self.bias


class SequenceParallelDecoder(Decoder):
    """The stream between layers is cut along the tokens."""

    def __init__(self, team: Team) -> None:
        super().__init__(team)
        for layer in self.layers:
            assert isinstance(layer, Layer)
            for part in layer.modules():
                if type(part) is Column:
                    part.__class__ = GatheredColumn
                elif type(part) is Row:
                    part.__class__ = ScatteredRow
        self.norm = GatheredNorm(self.norm, team)

    def hidden(self, ids: Tensor) -> Tensor:
        """ids [B, T] -> [B, T, H]."""
        x = self.team.own(self.embed_tokens(ids), 1)
        cos, sin = angles(torch.arange(ids.shape[1], device=ids.device), self.size.head_dim)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x)


class GatheredNorm(Norm):
    """The last norm, of tokens that are then gathered."""

    def __init__(self, norm: Norm, team: Team) -> None:
        super().__init__(norm.weight.shape[0])
        self.team = team

    def forward(self, x: Tensor) -> Tensor:
        return all_gathered(super().forward(x), 1, self.team)


def baseline() -> Built:
    return Decoder(), (ids_of(),)


def fixed(rank: int, groups: Groups) -> Built:
    return SequenceParallelDecoder(Team.of(groups["tp"])), (ids_of(),)


ENTRY = Entry(baseline=baseline, buggy=None, fixed=fixed, mesh=TWO_RANKS)
