"""B38: rows of a tensor are put at other places of the same tensor; made in place, rows are read too late."""

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts_compiler import TOKENS, WIDTH, Attention, FusedAttention, decoder_of
from torch import Tensor, nn


class Shuffled(nn.Module):
    """Tokens change places: even ones go to the front; x [B, T, W]."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))

    def places(self, device: torch.device) -> Tensor:
        """Where each token goes."""
        token = torch.arange(TOKENS, device=device)
        return torch.where(token % 2 == 0, token // 2, (TOKENS + token) // 2)

    def put(self, y: Tensor, places: Tensor) -> Tensor:
        """Each row at its place; y [T, B, W]."""
        return y.index_put((places,), y)

    def forward(self, x: Tensor) -> Tensor:
        y = self.into(x).transpose(0, 1).contiguous()
        y[-1].mul_(2.0)
        return self.out(self.put(y, self.places(x.device)).transpose(0, 1)) + x


class InPlace(Shuffled):
    """The destination is the source."""

    def put(self, y: Tensor, places: Tensor) -> Tensor:
        for row in range(TOKENS):
            y.index_put_((places[row : row + 1],), y[row : row + 1])  # planted
        return y


class InPlaceRightly(Shuffled):
    """The source is a copy."""

    def put(self, y: Tensor, places: Tensor) -> Tensor:
        kept = y.clone()
        for row in range(TOKENS):
            y.index_put_((places[row : row + 1],), kept[row : row + 1])
        return y


ENTRY = Entry(
    baseline=decoder_of(Attention, Shuffled, Attention),
    buggy=decoder_of(FusedAttention, InPlace, FusedAttention),
    fixed=decoder_of(FusedAttention, InPlaceRightly, FusedAttention),
)
