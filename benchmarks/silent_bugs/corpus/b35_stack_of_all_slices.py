"""B35: a stack of some of the slices of a tensor is replaced by the tensor, and then summed over too many."""

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts_compiler import WIDTH, Attention, FusedAttention, decoder_of
from torch import Tensor, nn

STREAMS, READ = 4, 2


class Streams(nn.Module):
    """Four streams of a token; attention reads what the first two are together, the rest goes around it."""

    def __init__(self) -> None:
        super().__init__()
        self.spread = nn.Linear(WIDTH, STREAMS * WIDTH, bias=False)
        self.attention = Attention()
        self.joined = nn.Linear(STREAMS * WIDTH, WIDTH, bias=False)

    def read(self, streams: Tensor) -> Tensor:
        """What the layer reads; streams [B, T, S, W]."""
        parts = streams.unbind(2)
        return torch.stack(parts[:READ], 2).sum(2)

    def turned(self, streams: Tensor) -> Tensor:
        """The last stream first, and the others in reverse."""
        return torch.stack(streams.unbind(2)[::-1], 2)

    def forward(self, x: Tensor) -> Tensor:
        streams = self.spread(x).unflatten(-1, (STREAMS, WIDTH))
        y = self.attention(self.read(streams))
        again = torch.stack(streams.unbind(2), 2)
        return y + self.joined((again + self.turned(streams)).flatten(2))


class Simplified(Streams):
    """Stacks of slices are what was sliced, where all are stacked in order; here some are."""

    def read(self, streams: Tensor) -> Tensor:
        return streams.sum(2)  # planted

    def turned(self, streams: Tensor) -> Tensor:
        return streams.flip(2)

    def forward(self, x: Tensor) -> Tensor:
        streams = self.spread(x).unflatten(-1, (STREAMS, WIDTH))
        y = self.attention(self.read(streams))
        return y + self.joined((streams + self.turned(streams)).flatten(2))


class SimplifiedRightly(Simplified):
    """The slice of the first ones."""

    def read(self, streams: Tensor) -> Tensor:
        return streams[:, :, :READ].sum(2)


ENTRY = Entry(
    baseline=decoder_of(Attention, Streams, Attention),
    buggy=decoder_of(FusedAttention, Simplified, FusedAttention),
    fixed=decoder_of(FusedAttention, SimplifiedRightly, FusedAttention),
)
