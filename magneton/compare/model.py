"""What a comparison finds out. Costs are in the meter's unit (``Comparison.unit``), per step of a phase."""

from dataclasses import dataclass
from typing import Literal

from magneton.errors import MagnetonError
from magneton.match.model import Unpaired
from magneton.profile.model import Doubt, Frame, OpId
from magneton.profile.origin import Origin, Unit
from magneton.quantity import Provenance, Quantity
from magneton.workload import Phase

Side = Literal["baseline", "candidate"]
RowKind = Literal["region", "leftover", "unread", "residual"]
Outcome = Literal["waste", "trade-off", "unresolved"]
TrialVerdict = Literal["confirmed", "refuted", "untestable here"]
Kind = Literal["misconfiguration", "api misuse", "redundant", "unclassified"]
Verdict = Literal["findings", "no difference", "unresolved", "not the same work"]

KINDS: tuple[Kind, ...] = ("misconfiguration", "api misuse", "redundant", "unclassified")


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """When a difference counts. Shares and ratios are fractions: 0.1 is 10 %."""

    threshold: float = 0.10  # energy above the lean side's
    min_share: float = 0.005  # excess as a share of the costly side's step
    slower_limit: float = 0.01  # how much slower the lean side may be before it is a trade-off
    confidence: float = 0.95
    tolerance: float | None = None  # of declared outputs, times their rms; None: by the workload's dtype

    def __post_init__(self) -> None:
        for name in ("threshold", "min_share", "slower_limit"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise MagnetonError(
                    f"{name} is a fraction of 0 or more, not {getattr(self, name)}", hint="0.1 is 10 %"
                )
        if self.tolerance is not None and not 0 <= self.tolerance < float("inf"):
            raise MagnetonError(
                f"a tolerance is 0 or more, not {self.tolerance}", hint="it is times the output's rms"
            )
        if not 0.5 <= self.confidence < 1:
            raise MagnetonError(
                f"confidence lies between 0.5 and 1, not {self.confidence}", hint="0.95 is usual"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputCheck:
    """One declared output on both sides. ``problem`` is None where they agree."""

    name: str
    problem: str | None
    max_difference: float | None = None  # None where the shapes forbid one
    allowed: float | None = None
    differing: tuple[tuple[int, ...], ...] = ()  # the first places of an integer output that differ
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuePlace:
    """A value and the line that made it."""

    name: str
    role: str
    shape: tuple[int, ...]
    dtype: str
    producer: str  # the operator's name; "" for what existed before the step
    module_path: str
    source: Frame | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first value, in order of execution, that is not what its like on the other side is."""

    text: str  # in what way
    baseline: ValuePlace
    candidate: ValuePlace


@dataclass(frozen=True, slots=True, kw_only=True)
class SameWork:
    """Whether the declared outputs agree. ``unchecked``: there was nothing to compare.

    ``divergence`` is None where they agree, or where no value on the way tells the sides apart.
    """

    status: Literal["same", "different", "unchecked"]
    tolerance: float
    outputs: tuple[OutputCheck, ...]
    divergence: Divergence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Joules per step that are told beside the cost and are in none of its rows. None: not measured."""

    baseline: Quantity | None
    candidate: Quantity | None
    ratio: Quantity | None  # candidate over baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTotals:
    """The clean pass: the truth that the rows add up to. Ratios are candidate over baseline.

    ``net`` is the cost above the device at rest, ``host`` what the host spends beside a device; None where
    neither side has it.
    """

    phase: Phase
    baseline_cost: Quantity | None
    candidate_cost: Quantity | None
    cost_ratio: Quantity | None
    baseline_duration_s: Quantity | None
    candidate_duration_s: Quantity | None
    duration_ratio: Quantity | None
    net: Beside | None = None
    host: Beside | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one side does in a row: its operators, the costliest first, with their count in one repetition.

    ``chain`` is the costliest operator's stack, outermost first; ``source`` its innermost frame outside
    the framework: the line of user or framework code to look at.
    """

    operators: tuple[tuple[str, int], ...]
    module_path: str  # numbers of repeated layers as ranges: "model.layers.0-7.self_attn"
    source: Frame | None
    chain: tuple[Frame, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideCost:
    """One side of a row, per step and over all repetitions. None means not measured."""

    work: Work | None  # None where the side does nothing here, and for the residual
    executions: int
    unread: int  # executions without a reading, which ``cost`` leaves out
    unread_share: float | None  # of the side's time in the timeline pass
    cost: Quantity | None
    share: float | None  # of the side's step
    duration_s: float | None  # in replay, else in the timeline pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeCost:
    """What one side spends in a scope of its system, by samples of the Python stack.

    ``cost`` is what the scope costs less ``attributed``: what lies between operators. Those of a phase add up
    to its residual; None where that cannot be divided. Its interval is that of the samples and of the replay.
    """

    scope: str  # "" outside all that have a name
    samples: int
    share: float  # of the step's time, operators included
    duration_s: float | None  # that share of a step of the clean pass
    attributed: float  # cost of the operators in the scope
    cost: Quantity | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeRow:
    """A part of the residual, on both sides; None where a side was not surveyed."""

    scope: str
    baseline: ScopeCost | None
    candidate: ScopeCost | None
    ratio: Quantity | None  # of costs between operators, candidate over baseline
    excess: float | None  # candidate minus baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a phase's account. The rows of a side sum to its total in ``PhaseTotals``.

    ``leftover`` is work that only one side does, ``unread`` operators that the meter could not read,
    ``residual`` the clean total minus everything attributed (it may be negative).
    """

    kind: RowKind
    phase: Phase
    repeats: int
    baseline: SideCost | None
    candidate: SideCost | None
    ratio: Quantity | None  # of costs, candidate over baseline
    duration_ratio: Quantity | None  # likewise
    excess: float | None  # candidate minus baseline
    group: int | None = None  # index into Matching.groups
    reason: Unpaired | None = None  # of a leftover
    scopes: tuple[ScopeRow, ...] = ()  # what a residual is made of, the largest first


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Something set differently on the two sides; None where a side does not have it."""

    where: Literal["option", "flag", "version"]
    name: str
    baseline: str | None
    candidate: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What happened to a finding when the costly side was run with ``causes`` set as on the lean side.

    ``saved`` is what the place then cost less, per step; None where that is not known. ``reason`` says how
    much of the excess is gone, or why it could not be tried.
    """

    causes: tuple[Difference, ...]
    verdict: TrialVerdict
    saved: Quantity | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A row whose excess counts. ``trials`` are what tested its cause, if anything did.

    ``ratio`` is costly over lean; None where the lean side does not do this work at all.
    """

    row: int  # index into Comparison.rows
    outcome: Outcome
    kind: Kind
    kind_reason: str
    costly: Side
    excess: float  # per step
    excess_share: float  # of the costly side's step
    ratio: Quantity | None
    duration_ratio: Quantity | None  # lean over costly: above 1, saving energy takes time
    causes: tuple[Difference, ...]  # candidates
    operators: tuple[OpId, ...] = ()  # of the costly side
    note: str = ""  # why it is unresolved
    trials: tuple[Trial, ...] = ()  # as made, then what cannot be tried; one that names the cause is last
    confirmed: bool = False  # whether the last trial names the cause


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFinding:
    """One host spends more than the other in a phase, beyond the threshold. ``ratio`` is costly over lean.

    ``device_alike``: the devices surely differ by less than the threshold, so that measuring them alone
    would not have shown it. A host that spins while it waits is such a case.
    """

    phase: Phase
    outcome: Outcome
    costly: Side
    excess_j: float  # per step
    ratio: Quantity
    device_alike: bool
    causes: tuple[Difference, ...]  # candidates, none of them tested


@dataclass(frozen=True, slots=True, kw_only=True)
class SideSummary:
    """Whose figures these are, and what speaks against them."""

    origin: Origin
    doubts: tuple[Doubt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The whole answer. ``reason`` says in a sentence why the verdict is what it is."""

    baseline: SideSummary
    candidate: SideSummary
    paired: bool  # blocks of both sides were measured alternately in one session
    unit: Unit
    provenance: Provenance
    criteria: Criteria
    verdict: Verdict
    reason: str
    same_work: SameWork
    totals: tuple[PhaseTotals, ...]
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]  # largest excess first
    host_findings: tuple[HostFinding, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
