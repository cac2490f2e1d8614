"""One phase of a profile, as detectors look at it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from magneton.match.distance import SAME_SIDE
from magneton.match.wiring import Wiring, wire
from magneton.profile.distance import distance
from magneton.profile.model import Operator, OpId, Profile, Value
from magneton.workload import Phase

NAMED = 3  # operators


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """``wiring`` says who produces and reads which value, by positions within the phase; see ``Wiring``."""

    profile: Profile
    phase: Phase
    wiring: Wiring

    @property
    def operators(self) -> tuple[Operator, ...]:
        return self.wiring.operators

    def value(self, value_id: int) -> Value:
        return self.profile.values[value_id]

    def producer(self, value_id: int) -> int | None:
        """The position of the operator that made it in this phase; None: it was there before."""
        return self.wiring.producer.get(value_id)

    def consumers(self, value_id: int) -> tuple[int, ...]:
        """Positions that read it, ascending."""
        return tuple(self.wiring.consumers.get(value_id, ()))

    @cached_property
    def readers_of_storage(self) -> dict[int, tuple[int, ...]]:
        """Storage -> positions that read any of its values, ascending."""
        found: dict[int, dict[int, None]] = {}
        for at, read in enumerate(self.wiring.inputs):
            for value in read:
                found.setdefault(self.value(value).storage_id, {})[at] = None
        return {storage: tuple(positions) for storage, positions in found.items()}

    @cached_property
    def declared(self) -> frozenset[int]:
        """Values that may leave the step.

        A profile keeps the contents of declared outputs and not which value they were, so what has the
        shape of a declared output counts as one.
        """
        shapes = {
            array.shape
            for name, array in self.profile.outputs.items()
            if name.partition(".")[0] == self.phase
        }
        return frozenset(
            value
            for written in self.wiring.outputs
            for value in written
            if tuple(self.value(value).shape) in shapes
        )

    @cached_property
    def old_storages(self) -> frozenset[int]:
        """Memory that was there before the phase and is read in it."""
        read = (value for values in self.wiring.inputs for value in values)
        return frozenset(self.storages(value for value in read if self.producer(value) is None))

    def storages(self, values: Iterable[int]) -> set[int]:
        """The memory that holds them."""
        return {self.value(value).storage_id for value in values}

    def names(self, positions: Sequence[int]) -> str:
        """What the first few of these operators are called, each name once."""
        return ", ".join(dict.fromkeys(self.operators[at].name for at in positions[:NAMED]))

    def equal(self, one: int, other: int) -> bool:
        """Whether two values of this profile hold the same numbers, in any order, as far as sketches tell."""
        if one == other:
            return True
        known = self.profile.sketches.known
        if not (known[one] and known[other]):
            return False
        return distance(self.profile.sketches, one, self.profile.sketches, other) <= SAME_SIDE

    def elements(self, value_id: int) -> int:
        return int(np.prod(self.value(value_id).shape, dtype=np.int64))

    def op_id(self, at: int) -> OpId:
        return self.operators[at].op_id


def step_of(profile: Profile, phase: Phase) -> Step:
    return Step(profile=profile, phase=phase, wiring=wire(profile, phase))
