"""What one profile says by itself: totals, its costliest operators, doubts. ``magneton show`` prints it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from magneton.compare.beside import host_j, net_j
from magneton.compare.conditions import side_notes
from magneton.compare.ledger import Ledger, share_of
from magneton.compare.model import ScopeCost
from magneton.compare.places import any_layer, merge_paths, source_line
from magneton.compare.scopes import scope_costs
from magneton.profile.cost import attribute
from magneton.profile.model import BlockReading, Doubt, Frame, Operator, OpId, Profile
from magneton.profile.origin import Origin, Unit
from magneton.quantity import Provenance, Quantity
from magneton.workload import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSummary:
    """One step of a phase. ``unattributed`` is the total minus what operators account for."""

    phase: Phase
    cost: Quantity | None
    duration_s: Quantity | None
    operators: int
    unread: int  # operators that should have a reading and have none
    attributed: float
    unattributed: float | None
    timeline_overhead: float | None  # duration with the framework's profiler over the clean one, minus 1
    scopes: tuple[ScopeCost, ...]  # where a step spends its time, the longest first
    net_j: Quantity | None = None  # cost above the device at rest; None: rest was not measured
    host_j: Quantity | None = None  # what the host spends meanwhile; in no other figure


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSummary:
    """Executions of one operator from one line, in equal modules of repeated layers. Figures are per step."""

    phase: Phase
    name: str
    module_path: str
    source: Frame | None
    executions: int
    cost: Quantity | None
    share: float | None
    duration_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSummary:
    """``operators`` are all of them, the costliest first; where nothing was read, the longest."""

    origin: Origin
    unit: Unit
    provenance: Provenance
    phases: tuple[PhaseSummary, ...]
    operators: tuple[OperatorSummary, ...]
    doubts: tuple[Doubt, ...]
    notes: tuple[str, ...] = ()  # what the device's sensors say against the figures


def summarise_profile(profile: Profile) -> ProfileSummary:
    """The profile as ``magneton show`` tells it."""
    ledger = Ledger(profile)
    meter = profile.origin.meter
    return ProfileSummary(
        origin=profile.origin,
        unit=meter.unit,
        provenance=meter.provenance,
        phases=tuple(_phase(ledger, phase) for phase in profile.origin.workload.phases),
        operators=_operators(ledger),
        doubts=profile.doubts,
        notes=side_notes(profile),
    )


def _phase(ledger: Ledger, phase: Phase) -> PhaseSummary:
    operators = [operator.op_id for operator in ledger.profile.operators if operator.phase == phase]
    cost = ledger.total(phase)
    share = attribute(ledger.profile, phase)
    return PhaseSummary(
        phase=phase,
        cost=cost,
        duration_s=ledger.duration_s(phase),
        operators=len(operators),
        unread=int(ledger.unread[operators].sum()),
        attributed=share.attributed,
        unattributed=None if cost is None else share.unattributed,
        timeline_overhead=_overhead(ledger.profile.blocks, phase),
        scopes=tuple(scope_costs(ledger, phase).values()),
        net_j=net_j(ledger.profile, phase),
        host_j=host_j(ledger.profile, phase),
    )


def _overhead(blocks: Sequence[BlockReading], phase: Phase) -> float | None:
    """What the profiler adds to a step: the median over rounds of timeline over clean, less one."""
    step_s: dict[str, dict[int, float]] = {
        which: {b.round: b.duration_s / b.steps for b in blocks if b.pass_ == which and b.phase == phase}
        for which in ("clean", "timeline")
    }
    timeline_s, clean_s = step_s["timeline"], step_s["clean"]
    ratios = [timeline_s[round_] / clean_s[round_] for round_ in timeline_s if clean_s.get(round_)]
    return float(np.median(ratios)) - 1 if ratios else None


def _operators(ledger: Ledger) -> tuple[OperatorSummary, ...]:
    profile = ledger.profile
    sources = [source_line(stack) for stack in profile.stacks]
    alike: dict[tuple[Phase, str, str, Frame | None], list[Operator]] = defaultdict(list)
    for operator in profile.operators:
        path = any_layer(operator.module_path)
        alike[operator.phase, operator.name, path, sources[operator.stack_id]].append(operator)
    summaries = [_summary(ledger, members, source) for (*_, source), members in alike.items()]
    return tuple(sorted(summaries, key=_rank))


def _summary(ledger: Ledger, members: Sequence[Operator], source: Frame | None) -> OperatorSummary:
    ids: list[OpId] = [operator.op_id for operator in members]
    phase = members[0].phase
    cost = ledger.attributed(ids)
    return OperatorSummary(
        phase=phase,
        name=members[0].name,
        module_path=merge_paths(operator.module_path for operator in members),
        source=source,
        executions=len(members),
        cost=cost,
        share=share_of(cost, ledger.total(phase)),
        duration_s=ledger.timeline_s(ids),
    )


def _rank(summary: OperatorSummary) -> tuple[float, float]:
    cost = 0.0 if summary.cost is None else summary.cost.value
    return -cost, -(summary.duration_s or 0.0)
