"""What an audit finds: places where one system does work that nobody needs."""

from dataclasses import dataclass
from typing import Literal

from magneton.compare.model import Work
from magneton.profile.model import Doubt, OpId
from magneton.profile.origin import Origin, Unit
from magneton.quantity import Provenance, Quantity
from magneton.workload import Phase

Pattern = Literal[
    "needless copy",
    "layout ping-pong",
    "dtype round trip",
    "materialised broadcast",
    "dead result",
    "repeated computation",
    "mostly unused result",
    "loop-invariant work",
    "per-item loop",
    "growing concatenation",
    "host synchronisation",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One place where a pattern shows in one phase. Every detector yields these.

    ``operators`` are those that could go, or shrink: of their cost ``avoidable`` (0..1] would be saved. It is
    an upper bound, for what takes their place is not known. None: how much of it is not known at all.
    ``line_of`` is the operator whose line is to be changed; by default the costliest one.
    """

    pattern: Pattern
    operators: tuple[OpId, ...]
    evidence: str  # what was seen, in a sentence without its full stop
    change: str  # what to try instead, likewise
    avoidable: float | None = 1.0
    line_of: OpId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Waste:
    """Sightings of one pattern on one line, in equal modules of repeated layers: one thing to change."""

    pattern: Pattern
    phase: Phase
    repeats: int  # how many sightings
    work: Work
    evidence: str
    change: str
    cost: Quantity | None  # of the operators, per step; None: not measured
    share: float | None  # of the step
    avoidable: float | None  # of the step, at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """All that one profile shows. One operator may appear under several patterns: shares do not add up.

    ``share`` of each phase is the part of the step that operators under any pattern take together.
    """

    origin: Origin
    doubts: tuple[Doubt, ...]
    unit: Unit
    provenance: Provenance
    min_share: float
    wastes: tuple[Waste, ...]  # largest first
    small: int  # wastes below ``min_share``, left out
    steps: tuple["AuditedStep", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedStep:
    phase: Phase
    operators: int
    cost: Quantity | None  # of a step
    share: float | None  # of it, in operators that some waste names
