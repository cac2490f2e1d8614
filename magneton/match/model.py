"""What matching finds out."""

from dataclasses import dataclass
from typing import Literal

from magneton.profile.model import OpId, ValueId
from magneton.workload import Phase

Evidence = Literal["value", "composite", "context", "order", "output", "input", "parameter"]
SideName = Literal["baseline", "candidate"]
Unpaired = Literal[
    "no-counterpart-value",
    "low-entropy",
    "ambiguous",
    "not-sketched",
    "sync",
    "side-effect",
    "dead",
    "alloc",
    "setup",  # feeds only sources or constants on its side: tables computed on the fly
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuePair:
    """Values that hold the same elements on both sides, up to layout.

    Usually one and one; a composite pairs one value with the parts that make it up (QKV).
    """

    baseline: tuple[ValueId, ...]
    candidate: tuple[ValueId, ...]
    evidence: Evidence
    distance: float  # of the sketches, 0.0 where the evidence is not the sketch


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Operators of both sides that turn the same values into the same values.

    Half-open: it holds the producers of what it produces and not of what it consumes. ``produces`` and
    ``consumes`` index ``Matching.pairs``. A shared region (masks, RoPE tables) serves several regions.
    """

    phase: Phase
    baseline: tuple[OpId, ...]
    candidate: tuple[OpId, ...]
    produces: tuple[int, ...]
    consumes: tuple[int, ...]
    shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """An operator in no paired region, and why."""

    op_id: OpId
    reason: Unpaired


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionGroup:
    """Equal region pairs of repeated layers and steps: one line in a report, with a count.

    Members have the same operators (names, keys) on each side and the same shape of wiring.
    """

    regions: tuple[int, ...]  # indices into Matching.regions, in order of execution


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """Every operator of either side is in exactly one region or one leftover."""

    pairs: tuple[ValuePair, ...]
    regions: tuple[Region, ...]
    groups: tuple[RegionGroup, ...]  # each region is in exactly one
    only_baseline: tuple[Leftover, ...]
    only_candidate: tuple[Leftover, ...]
