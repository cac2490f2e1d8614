"""B21: a shard of columns is reshaped as if its elements stood together in the whole tensor."""

from collections.abc import Mapping

from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import DecoderBody, Size, ids_of
from silent_bugs.hosts.ranks import Team, all_gathered
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from scalify.ir.mesh import Mesh

SIZE = Size(kv_heads=4)


class TwoBookDecoder(DecoderBody):
    """The vocabulary is made of two books: logarithms of probabilities are taken of each by itself."""

    def forward(self, ids: Tensor) -> Tensor:
        """ids [B, T] -> [2 B T / ranks, V / 2]."""
        return self.books(self.logits(ids).flatten(0, 1)).log_softmax(-1)

    def books(self, logits: Tensor) -> Tensor:
        """logits [B T, V / ranks] -> [2 B T / ranks, V / 2]."""
        whole = all_gathered(logits, -1, self.team)
        return self.team.own(whole.view(-1, self.size.vocabulary // 2), 0)


class BuggyDecoder(TwoBookDecoder):
    def books(self, logits: Tensor) -> Tensor:
        return logits.view(-1, self.size.vocabulary // 2)  # planted


def baseline() -> tuple[nn.Module, tuple[Tensor]]:
    return TwoBookDecoder(size=SIZE), (ids_of(),)


def buggy(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor]]:
    return BuggyDecoder(Team.of(groups["tp"]), SIZE), (ids_of(),)


def fixed(rank: int, groups: Mapping[str, ProcessGroup]) -> tuple[nn.Module, tuple[Tensor]]:
    return TwoBookDecoder(Team.of(groups["tp"]), SIZE), (ids_of(),)


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("tp", 4),)))
