"""A block of experts to which a router sends each token, on one device and with the experts on several.

Of every group of tokens an expert takes as many as it has places for, in the tokens' order; what finds no
place passes by. Ranks hold a group of tokens each and a part of the experts: tokens travel to their experts
and back.
"""

import torch
import torch.nn.functional as F
from scalify_models.blocks import INNER, WIDTH, Build, Groups
from scalify_models.regions import Copied, Exchanged, Summed
from torch import Tensor, nn
from torch.distributed import ProcessGroup

EXPERTS, CHOSEN, TOKENS, PLACES = 8, 2, 16, 5


class Router(nn.Module):
    """For every token the likeliest experts, how much each counts, and its place there."""

    def __init__(self, group: ProcessGroup | None) -> None:
        super().__init__()
        self.group = group
        self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """x [G, T, W] -> which expert and place each token goes to, and how much that counts [G, T, E, P]."""
        weight = self.gate.weight if self.group is None else Copied.apply(self.gate.weight, self.group)
        chances, chosen = F.linear(x, weight).softmax(-1).topk(CHOSEN, dim=-1)
        chances = chances / chances.sum(-1, keepdim=True)
        wanted = F.one_hot(chosen, EXPERTS).transpose(1, 2).flatten(1, 2)
        place = (wanted.cumsum(1) - 1) * wanted
        kept = wanted * (place < PLACES)
        spot = F.one_hot(place.clamp(max=PLACES - 1), PLACES) * kept.unsqueeze(-1)
        spot = spot.unflatten(1, (CHOSEN, -1)).transpose(1, 2).to(x.dtype)
        return spot.sum(2), (spot * chances[..., None, None]).sum(2)


class Experts(nn.Module):
    """Perceptrons side by side, or those that one rank holds."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.up, self.down = (
            nn.Parameter(torch.empty(count, WIDTH, INNER)),
            nn.Parameter(torch.empty(count, INNER, WIDTH)),
        )

    def forward(self, x: Tensor) -> Tensor:
        """x [E, N, W] -> [E, N, W]."""
        return torch.bmm(F.silu(torch.bmm(x, self.up)), self.down)


class Mixture(nn.Module):
    """Router, experts, and what comes back weighted; then the mean square distance from a target."""

    def __init__(self, ranks: int, groups: int, group: ProcessGroup | None) -> None:
        super().__init__()
        self.ranks, self.groups, self.group = ranks, groups, group
        self.router, self.experts = Router(group), Experts(EXPERTS // ranks)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        """x [G, T, W]: one group on each rank, or all of them."""
        sent, weight = self.router(x)
        inside = torch.einsum("gtep,gtw->egpw", sent, x)
        if self.group is None:
            made = self.experts(inside.flatten(1, 2)).view(inside.shape)
        else:
            made = self._elsewhere(inside, self.group)
        distance = x + torch.einsum("gtep,egpw->gtw", weight, made) - target
        loss = distance.pow(2).sum() / (self.groups * TOKENS * WIDTH)
        return loss if self.group is None else Summed.apply(loss, self.group)

    def _elsewhere(self, inside: Tensor, group: ProcessGroup) -> Tensor:
        """[E, 1, P, W]: to the ranks that hold the experts, and back."""
        there = Exchanged.apply(inside, group).view(self.ranks, -1, PLACES, WIDTH)
        made = self.experts(there.transpose(0, 1).flatten(1, 2))
        back = made.unflatten(1, (self.ranks, PLACES)).transpose(0, 1).reshape(inside.shape)
        return Exchanged.apply(back, group)


def _mixture(ranks: int, groups: int, group: ProcessGroup | None) -> object:
    with torch.device("meta"):
        mine = groups // ranks
        x = torch.empty(mine, TOKENS, WIDTH, requires_grad=True)
        return Mixture(ranks, groups, group), (x, torch.empty(mine, TOKENS, WIDTH))


def experts_alone(groups: int) -> Build:
    """On one device."""
    return lambda: _mixture(1, groups, None)


def experts_in_parts(rank: int, groups: Groups) -> object:
    """On the ranks of axis ``ep``, as many as groups of tokens."""
    ranks = groups["ep"].size()
    return _mixture(ranks, ranks, groups["ep"])
