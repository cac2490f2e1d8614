"""Mixtures of experts: by a dense choice on the rank, and with experts on ranks that tokens are sent to."""

import torch
import torch.nn.functional as F
from silent_bugs.hosts.decoder import Mlp, Size
from silent_bugs.hosts.ranks import Team
from silent_bugs.hosts.training import Attached
from torch import Tensor, nn

EXPERTS = 4


class Choice(Mlp):
    """Every rank has all experts and some of the tokens; of each token the two likeliest experts are used.

    A second loss wants tokens spread evenly: it is the same on all ranks, for it is made of what they count
    together.
    """

    tokens: Team

    def __init__(self, size: Size, team: Team) -> None:
        nn.Module.__init__(self)
        self.size = size
        self.router = nn.Parameter(torch.zeros(EXPERTS, size.hidden))
        self.up = nn.Parameter(torch.zeros(EXPERTS, size.intermediate, size.hidden))
        self.down = nn.Parameter(torch.zeros(EXPERTS, size.hidden, size.intermediate))

    def forward(self, x: Tensor) -> Tensor:
        """x [B, T, H] -> [B, T, H]."""
        shares = F.linear(x, self.router).softmax(-1)
        chosen = shares >= shares.topk(2).values[..., -1:]
        shares = self.spread(shares, chosen.float())
        inner = F.silu(torch.einsum("bth,eih->beti", x, self.up))
        each = torch.einsum("beti,ehi->beth", inner, self.down)
        return torch.einsum("beth,bte->bth", each, shares * chosen)

    def spread(self, shares: Tensor, chosen: Tensor) -> Tensor:
        """Shares [B, T, E] as they are; where their gradient passes, that of the second loss joins it."""
        count = chosen.shape[0] * chosen.shape[1] * self.tokens.size
        often = self.tokens.summed(chosen.sum((0, 1))) / count
        likely = self.tokens.summed(shares.sum((0, 1))) / count
        return self.attached(shares, EXPERTS * (often * likely).sum())

    def attached(self, shares: Tensor, loss: Tensor) -> Tensor:
        """With the second loss: gradients will be divided by the number of all tokens."""
        count = shares.shape[0] * shares.shape[1]
        return Attached.apply(shares, loss, 0.01 * count * self.tokens.size)
