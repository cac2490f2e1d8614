"""B25: rows are added to a table at their numbers in the whole cache, into each rank's own part of it."""

import torch
from silent_bugs.entry import Entry
from silent_bugs.hosts.decoder import SIZE, Attention, Decoder, Size, ids_of
from silent_bugs.hosts.ranks import Team, all_gathered
from silent_bugs.hosts_training import Built, Groups
from torch import Tensor, nn

from scalify.ir.mesh import Mesh

SLOTS = 16


class Cache(nn.Module):
    """Sums by slot, of which every rank has some; so has it of the tokens that are added."""

    def __init__(self, ranks: Team) -> None:
        super().__init__()
        self.ranks = ranks

    def forward(self, cache: Tensor, rows: Tensor, slots: Tensor) -> Tensor:
        """cache [S / ranks, D], rows [N / ranks, D], slots [N] -> the cache after the write."""
        rows = all_gathered(rows, 0, self.ranks)
        local = slots - self.ranks.rank * cache.shape[0]
        inside = (local >= 0) & (local < cache.shape[0])
        return cache.index_add(0, local * inside, rows * inside.unsqueeze(1))


class WholeCache(Cache):
    def forward(self, cache: Tensor, rows: Tensor, slots: Tensor) -> Tensor:
        return cache.index_add(0, slots, rows)


class BuggyCache(Cache):
    def forward(self, cache: Tensor, rows: Tensor, slots: Tensor) -> Tensor:
        own = slots.chunk(self.ranks.size)[self.ranks.rank]
        return cache.index_add(0, own, rows)  # planted


class Prefill(nn.Module):
    """A decoder that reads texts, and hands on what its last norm gives by the slot of each token."""

    def __init__(self, ranks: Team, cache: type[Cache]) -> None:
        super().__init__()
        self.ranks = ranks
        self.model = Decoder(attentions=(Attention, Attention))
        self.keys, self.values = (nn.Linear(SIZE.hidden, SIZE.head_dim, bias=False) for _ in range(2))
        self.key_cache, self.value_cache = cache(ranks), cache(ranks)

    def forward(self, ids: Tensor, slots: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        """ids [B / ranks, T], slots [B T], both caches [S / ranks, D] -> both caches."""
        x = self.model.hidden(ids).flatten(0, 1)
        return self.key_cache(keys, self.keys(x), slots), self.value_cache(
            values, self.values(x).tanh(), slots
        )


def inputs(ranks: int, size: Size = SIZE) -> tuple[Tensor, ...]:
    slots = torch.zeros(size.batch * size.tokens, dtype=torch.long)
    caches = (torch.zeros(SLOTS // ranks, size.head_dim) for _ in range(2))
    return ids_of(batch=size.batch // ranks), slots, *caches


def baseline() -> Built:
    return Prefill(Team(), WholeCache), inputs(1)


def buggy(rank: int, groups: Groups) -> Built:
    return Prefill(Team.of(groups["cp"]), BuggyCache), inputs(2)


def fixed(rank: int, groups: Groups) -> Built:
    return Prefill(Team.of(groups["cp"]), Cache), inputs(2)


ENTRY = Entry(baseline=baseline, buggy=buggy, fixed=fixed, mesh=Mesh(axes=(("cp", 2),)))
