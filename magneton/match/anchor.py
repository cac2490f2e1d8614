"""Anchors: what is known to be the same on both sides."""

from dataclasses import dataclass
from typing import NamedTuple

from magneton.match.classes import Classes
from magneton.match.model import Evidence
from magneton.match.wiring import Wiring


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Side:
    """One side of one phase: its wiring and its value classes."""

    wiring: Wiring
    classes: Classes


class Spot(NamedTuple):
    """One generation of one class. A tuple, for it is hashed more often than anything else here."""

    which: int
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """Spots of both sides that hold the same elements. One spot each, or a whole and its parts."""

    baseline: tuple[Spot, ...]
    candidate: tuple[Spot, ...]
    evidence: Evidence
    distance: float

    def turned(self) -> "Anchor":
        return Anchor(
            baseline=self.candidate, candidate=self.baseline, evidence=self.evidence, distance=self.distance
        )


def is_source(side: Side, spot: Spot) -> bool:
    """Whether the values of ``spot`` existed before the phase."""
    return all(v not in side.wiring.producer for v in side.classes.roots[spot.which][spot.generation])
