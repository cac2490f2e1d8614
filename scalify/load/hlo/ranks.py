"""How many ranks run the module, and which ranks a collective's groups mean.

HLO numbers replicas and partitions; a rank is ``replica * partitions + partition``. Whether the ids of a
group are replicas, partitions or ranks depends on the opcode, the channel and ``use_global_device_ids``. A
file that does not state the counts (serialized modules seldom do) is taken to have the ranks that its groups
name.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Literal

from scalify.errors import InvalidGraph, UnsupportedFormat
from scalify.ir.mesh import SINGLE, Groups, Mesh
from scalify.load.hlo.groups import MAX_RANKS
from scalify.load.hlo.program import Instruction, Module

Mode = Literal["replicas", "partitions", "replicas of all partitions", "ranks"]

COLLECTIVES = frozenset(
    {
        "all-reduce", "all-reduce-start", "all-gather", "all-gather-start", "reduce-scatter", "all-to-all",
        "collective-permute", "collective-permute-start", "collective-broadcast", "ragged-all-to-all",
    }
)  # fmt: skip
_WITHOUT_GLOBAL_IDS = frozenset(
    {
        "all-to-all", "collective-permute", "collective-permute-start", "collective-broadcast",
        "ragged-all-to-all",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ranks:
    """Counts of replicas and partitions; ``known`` is False where nothing in the file tells them."""

    replicas: int
    partitions: int
    known: bool
    axes: tuple[tuple[str, int], ...] = ()

    def mesh(self) -> Mesh:
        """The named axes; else one called ``rank``; replica and partition where there are several of both."""
        if self.axes:
            return Mesh(axes=self.axes)
        if self.replicas > 1 and self.partitions > 1:
            return Mesh(axes=(("replica", self.replicas), ("partition", self.partitions)))
        size = self.replicas * self.partitions
        return Mesh(axes=(("rank", size),)) if size > 1 else SINGLE


def mode_of(instruction: Instruction) -> Mode:
    """What the ids in the instruction's groups number."""
    if instruction.channel <= 0:
        return "replicas"
    if instruction.opcode in _WITHOUT_GLOBAL_IDS:
        return "partitions"
    return "ranks" if instruction.global_ids else "replicas of all partitions"


def ranks_of(module: Module) -> Ranks:
    """The counts that the module states, or else those that its groups name."""
    if module.axes:
        ranks = Ranks(1, prod(size for _, size in module.axes), True, module.axes)
    elif module.replicas or module.partitions:
        ranks = Ranks(module.replicas or 1, module.partitions or 1, True)
    else:
        ranks = _named(module)
    if not 1 <= ranks.replicas * ranks.partitions <= MAX_RANKS or min(ranks.replicas, ranks.partitions) < 1:
        raise InvalidGraph(
            f"the module is for {ranks.replicas} replicas of {ranks.partitions} partitions",
            hint=f"modules for up to {MAX_RANKS} ranks are read",
        )
    return ranks


def _named(module: Module) -> Ranks:
    highest: dict[Mode, int] = {}
    for mode, identifier in _ids(module):
        highest[mode] = max(highest.get(mode, 0), identifier + 1)
    replicas = max(highest.get("replicas", 1), highest.get("replicas of all partitions", 1))
    partitions = max(highest.get("partitions", 1), highest.get("ranks", 1) // replicas)
    if replicas > 1 and partitions > 1:
        raise UnsupportedFormat(
            "the module's groups name replicas and partitions, but not how many there are of each",
            hint="write it as text, whose first line states replica_count and num_partitions",
        )
    return Ranks(replicas, partitions, bool(highest))


def _ids(module: Module) -> Iterator[tuple[Mode, int]]:
    for computation in module.computations.values():
        for instruction in computation.instructions:
            if instruction.opcode not in COLLECTIVES:
                continue
            mode = mode_of(instruction)
            for group in (*(instruction.groups or ()), *instruction.pairs):
                for identifier in group:
                    yield mode, identifier


def rank_groups(instruction: Instruction, ranks: Ranks) -> Groups | None:
    """The instruction's groups as groups of ranks; None where they are not of one size or leave ranks out."""
    groups = _as_ranks(instruction, ranks)
    total = ranks.replicas * ranks.partitions
    members = [rank for group in groups for rank in group]
    if any(not 0 <= rank < total for rank in members):
        raise InvalidGraph(
            f"{instruction.opcode} {instruction.name} names a rank outside 0..{total - 1}",
            hint="the file states fewer ranks than its groups name; write it again",
        )
    if len(set(map(len, groups))) != 1 or len(members) != total or len(set(members)) != total:
        return None
    return groups


def rank_pairs(instruction: Instruction, ranks: Ranks) -> tuple[tuple[int, int], ...]:
    """A permutation's pairs as pairs of ranks."""
    if mode_of(instruction) == "partitions":
        offsets = [replica * ranks.partitions for replica in range(ranks.replicas)]
        return tuple(
            (start + source, start + target) for start in offsets for source, target in instruction.pairs
        )
    return tuple(
        (source * ranks.partitions + partition, target * ranks.partitions + partition)
        for partition in range(ranks.partitions)
        for source, target in instruction.pairs
    )


def _as_ranks(instruction: Instruction, ranks: Ranks) -> Groups:
    mode, count = mode_of(instruction), ranks.partitions
    groups = instruction.groups
    if not groups:
        if not ranks.known:
            raise UnsupportedFormat(
                f"{instruction.opcode} {instruction.name} is over all ranks; the file does not say how many",
                hint="write the module with replica groups, or as text, whose first line states the counts",
            )
        size = {"partitions": count, "ranks": ranks.replicas * count}.get(mode, ranks.replicas)
        groups = (tuple(range(size)),)
    match mode:
        case "ranks":
            return groups
        case "partitions":
            return tuple(
                tuple(replica * count + member for member in group)
                for replica in range(ranks.replicas)
                for group in groups
            )
        case "replicas":
            return tuple(
                tuple(member * count + partition for member in group)
                for group in groups
                for partition in range(count)
            )
        case "replicas of all partitions":
            return tuple(
                tuple(member * count + partition for member in group for partition in range(count))
                for group in groups
            )
