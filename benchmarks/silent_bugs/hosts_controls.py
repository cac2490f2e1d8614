"""Parts of decoders that do the same in another way: what control pairs are made of.

They go into the decoder of ``hosts/decoder.py`` and the engine of ``hosts_inference.py``.
"""

import torch
import torch.nn.functional as F
from silent_bugs.hosts.decoder import Attention, Decoder, Mlp, Row, Size, ids_of
from silent_bugs.hosts.ranks import Team, all_gathered, reduce_scattered
from torch import Tensor, nn


class SummedInTwoSteps(Row):
    """A reduce-scatter and an all-gather where others have an all-reduce."""

    def forward(self, x: Tensor) -> Tensor:
        own = reduce_scattered(F.linear(x, self.weight), 0, self.team)
        return all_gathered(own, 0, self.team) + self.bias


class BiasOfFirst(Row):
    """The first rank alone adds the bias, before the sum."""

    def forward(self, x: Tensor) -> Tensor:
        return self.team.summed(F.linear(x, self.weight, self.bias if self.team.rank == 0 else None))


class BiasInShares(Row):
    """Every rank adds its share of the bias, before the sum."""

    def forward(self, x: Tensor) -> Tensor:
        return self.team.summed(F.linear(x, self.weight) + self.bias / self.team.size)


class MlpBy(Mlp):
    """Comes down by another linear layer."""

    row: type[Row]

    def __init__(self, size: Size, team: Team) -> None:
        super().__init__(size, team)
        self.down_proj = self.row(size.intermediate, size.hidden, team)


class AttentionBy(Attention):
    """Puts its heads together by another linear layer."""

    row: type[Row]

    def __init__(self, size: Size, team: Team) -> None:
        super().__init__(size, team)
        self.o_proj = self.row(size.hidden, size.hidden, team)


def parts_by(row: type[Row]) -> tuple[type[Attention], type[Mlp]]:
    """Attention and perceptron with such a layer at their ends."""
    return (
        type("OtherAttention", (AttentionBy,), {"row": row}),
        type("OtherMlp", (MlpBy,), {"row": row}),
    )


class Trained(nn.Module):
    """Gives the mean loss over all tokens."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        """ids, labels [B, T] -> a loss."""
        logits = self.decoder.team.collected(self.decoder(ids), -1)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").mean()


def ids_and_labels(batch: int | None = None) -> tuple[Tensor, Tensor]:
    """Only the shapes matter."""
    return ids_of(batch=batch), torch.zeros_like(ids_of(batch=batch))
