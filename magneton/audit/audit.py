"""All detectors over one profile; what they see on one line of code becomes one waste."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from magneton.audit.growing import growing_concatenations
from magneton.audit.invariant import loop_invariant_work
from magneton.audit.loops import per_item_loops
from magneton.audit.model import Audit, AuditedStep, Pattern, Sighting, Waste
from magneton.audit.repeated import repeated_computation
from magneton.audit.results import dead_results, mostly_unused_results
from magneton.audit.step import Step, step_of
from magneton.audit.syncs import host_synchronisations
from magneton.compare.ledger import Ledger, share_of
from magneton.compare.model import Work
from magneton.compare.places import any_layer, describe_work, source_line
from magneton.profile.model import Frame, OpId, Profile

Detector = Callable[[Step], Iterator[Sighting]]

DETECTORS: tuple[Detector, ...] = (
    dead_results,
    mostly_unused_results,
    repeated_computation,
    loop_invariant_work,
    per_item_loops,
    growing_concatenations,
    host_synchronisations,
)
MIN_SHARE = 0.005  # of a step


class _Found(NamedTuple):
    """A waste, and the operators it is about, each once."""

    waste: Waste
    operators: tuple[OpId, ...]


def audit(
    profile: Profile, *, min_share: float = MIN_SHARE, detectors: Sequence[Detector] = DETECTORS
) -> Audit:
    """What one system wastes by itself.

    Wastes below ``min_share`` of a step are only counted. On a device, a place where the host waits is
    told whatever its operator costs: that cost is not the stall's.
    """
    ledger = Ledger(profile)
    wastes: list[Waste] = []
    steps: list[AuditedStep] = []
    small = 0
    for phase in profile.origin.workload.phases:
        step = step_of(profile, phase)
        found = _found(step, detectors, ledger)
        told = [one for one in found if _matters(one.waste, profile, min_share)]
        small += len(found) - len(told)
        wastes += [one.waste for one in told]
        steps.append(_audited(step, told, ledger))
    return Audit(
        origin=profile.origin,
        doubts=profile.doubts,
        unit=profile.origin.meter.unit,
        provenance=profile.origin.meter.provenance,
        min_share=min_share,
        wastes=tuple(sorted(wastes, key=_largest_first)),
        small=small,
        steps=tuple(steps),
    )


def _found(step: Step, detectors: Sequence[Detector], ledger: Ledger) -> list[_Found]:
    places: dict[tuple[Pattern, Frame | None, str], list[Sighting]] = defaultdict(list)
    for sighting in (sighting for detector in detectors for sighting in detector(step)):
        blamed = step.profile.operators[_blamed(sighting, ledger)]
        line = source_line(step.profile.stacks[blamed.stack_id])
        places[sighting.pattern, line, any_layer(blamed.module_path)].append(sighting)
    return [_waste(step, alike, ledger) for alike in places.values()]


def _blamed(sighting: Sighting, ledger: Ledger) -> OpId:
    return max(sighting.operators, key=ledger.weight) if sighting.line_of is None else sighting.line_of


def _waste(step: Step, alike: Sequence[Sighting], ledger: Ledger) -> _Found:
    """What several sightings claim of one operator counts once, and the largest claim holds."""
    claims: dict[OpId, float | None] = {}
    for sighting in alike:
        for op in sighting.operators:
            claims[op] = _larger(claims.get(op), sighting.avoidable)
    operators = tuple(sorted(claims))
    first = max(alike, key=lambda sighting: max(ledger.weight(op) for op in sighting.operators))
    total, cost = ledger.total(step.phase), ledger.attributed(operators)
    waste = Waste(
        pattern=first.pattern,
        phase=step.phase,
        repeats=len(alike),
        work=_work(step.profile, first, alike, ledger),
        evidence=first.evidence,
        change=first.change,
        cost=cost,
        share=share_of(cost, total),
        avoidable=_avoidable(claims, step, ledger),
    )
    return _Found(waste, operators)


def _work(profile: Profile, first: Sighting, alike: Sequence[Sighting], ledger: Ledger) -> Work:
    """That of all of them, as the costliest one does it, on the line that is to be changed."""
    others = [sighting.operators for sighting in alike if sighting is not first]
    work = describe_work(profile, [first.operators, *others], ledger.weight)
    stack = profile.stacks[profile.operators[_blamed(first, ledger)].stack_id]
    return replace(work, source=source_line(stack), chain=stack.frames)


def _larger(one: float | None, other: float | None) -> float | None:
    known = [claim for claim in (one, other) if claim is not None]
    return max(known, default=None)


def _avoidable(claims: dict[OpId, float | None], step: Step, ledger: Ledger) -> float | None:
    """The part of the step that would be saved at most; None where that is not known."""
    total = ledger.total(step.phase)
    parts = [
        claim * cost.value
        for op, claim in claims.items()
        if claim is not None and (cost := ledger.attributed((op,))) is not None
    ]
    return sum(parts) / total.value if parts and total is not None and total.value > 0 else None


def _matters(waste: Waste, profile: Profile, min_share: float) -> bool:
    if waste.pattern == "host synchronisation" and profile.origin.device_kind != "cpu":
        return True
    saved = waste.share if waste.avoidable is None else waste.avoidable
    return saved is not None and saved >= min_share


def _audited(step: Step, told: Sequence[_Found], ledger: Ledger) -> AuditedStep:
    named = sorted({op for one in told for op in one.operators})
    total = ledger.total(step.phase)
    return AuditedStep(
        phase=step.phase,
        operators=len(step.operators),
        cost=total,
        share=share_of(ledger.attributed(named), total) if named else 0.0,
    )


def _largest_first(waste: Waste) -> float:
    return -(waste.avoidable or waste.share or 0.0)
