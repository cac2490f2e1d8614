"""The account of each phase: rows whose costs sum, on either side, to that side's clean total.

In: the ledgers of two profiles and their matching. Out: one row per region group, rows for work that only
one side does, a row for what the meter could not read, and the residual: the clean total minus everything
attributed. Operators are never rescaled to fit the total, so the residual may be negative.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from magneton.compare.conditions import pairs_apart
from magneton.compare.ledger import Ledger, share_of
from magneton.compare.model import PhaseTotals, Row, Side, SideCost
from magneton.compare.places import any_layer, describe_work
from magneton.compare.scopes import scope_rows
from magneton.match.model import Leftover, Matching, RegionGroup, Unpaired
from magneton.profile.model import OpId
from magneton.quantity import Quantity
from magneton.statistics import (
    RatioEstimate,
    Spread,
    common_rounds,
    error_of_either,
    estimate_ratio,
    known_rounds,
)
from magneton.workload import Phase

NOTABLE_RESIDUAL = 0.2  # of a step
ROUNDING = 1e-9  # what summing in another order makes of a total is no residual


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row with the statistics behind its ratio. ``estimate`` is None where there is no ratio."""

    row: Row
    estimate: RatioEstimate | None = None
    least: float = 0.0  # the lower end of what the only side, or the costly one, spends
    operators: tuple[tuple[OpId, ...], tuple[OpId, ...]] = ((), ())  # of the baseline, of the candidate


def phase_totals(baseline: Ledger, candidate: Ledger, phase: Phase, *, paired: bool) -> PhaseTotals:
    """Cost and time of a step on both sides in the clean pass."""
    one, other = baseline.steps[phase], candidate.steps[phase]
    apart = pairs_apart(baseline.profile, candidate.profile, phase).rounds if paired else frozenset[int]()
    alike = np.where(np.isin(one.rounds, sorted(apart)), np.nan, one.cost)
    ledgers = baseline, candidate
    cost = _estimate((one.rounds, alike), (other.rounds, other.cost), paired=paired, ledgers=ledgers)
    duration = _estimate((one.rounds, one.duration_s), (other.rounds, other.duration_s), paired=paired)
    return PhaseTotals(
        phase=phase,
        baseline_cost=baseline.total(phase),
        candidate_cost=candidate.total(phase),
        cost_ratio=None if cost is None else cost.interval(),
        baseline_duration_s=baseline.duration_s(phase),
        candidate_duration_s=candidate.duration_s(phase),
        duration_ratio=None if duration is None else duration.interval(),
    )


def account(
    baseline: Ledger, candidate: Ledger, matching: Matching, *, paired: bool, confidence: float
) -> tuple[Entry, ...]:
    """All rows of all phases, in the order of the phases; within one, the largest difference first."""
    entries = [
        *_region_entries(baseline, candidate, matching, paired=paired, confidence=confidence),
        *_leftover_entries("baseline", baseline, matching.only_baseline),
        *_leftover_entries("candidate", candidate, matching.only_candidate),
    ]
    ordered: list[Entry] = []
    for phase in baseline.profile.origin.workload.phases:
        attributed = [entry for entry in entries if entry.row.phase == phase]
        attributed.sort(key=lambda entry: -abs(entry.row.excess or 0.0))
        attributed.sort(key=lambda entry: entry.row.kind == "leftover")
        ordered += attributed
        ordered += _unread_entries(baseline, candidate, phase)
        ordered.append(_residual_entry(baseline, candidate, phase, [entry.row for entry in attributed]))
    return tuple(ordered)


def residual_notes(rows: Sequence[Row]) -> tuple[str, ...]:
    """Where attribution and the clean pass are so far apart that rows should be read with care."""
    return tuple(
        _residual_note(row.phase, name, side.share)
        for row in rows
        if row.kind == "residual"
        for name, side in (("baseline", row.baseline), ("candidate", row.candidate))
        if side is not None and side.share is not None and abs(side.share) > NOTABLE_RESIDUAL
    )


def _residual_note(phase: Phase, side: str, share: float) -> str:
    if share == 1.0:
        return f"no operator of {phase} on the {side}'s side has a reading: its step is seen as a whole only"
    text = f"the operators of {phase} on the {side}'s side account for {1 - share:.0%} of its step:"
    return text + (" replay overstates small operators" if share < 0 else " much happens between operators")


def _region_entries(
    baseline: Ledger, candidate: Ledger, matching: Matching, *, paired: bool, confidence: float
) -> Iterator[Entry]:
    for number, group in enumerate(matching.groups):
        for phase, one, other in _repetitions(matching, group):
            ours, theirs = [op for part in one for op in part], [op for part in other for op in part]
            estimate = _estimate(
                (baseline.rounds, baseline.by_round(ours)),
                (candidate.rounds, candidate.by_round(theirs)),
                paired=paired,
                ledgers=(baseline, candidate),
            )
            time = _estimate(
                (baseline.rounds, baseline.seconds_by_round(ours)),
                (candidate.rounds, candidate.seconds_by_round(theirs)),
                paired=paired,
            )
            sides = baseline.side(_filled(one), phase), candidate.side(_filled(other), phase)
            yield Entry(
                estimate=estimate,
                least=max(baseline.least(ours), candidate.least(theirs)),
                operators=(tuple(ours), tuple(theirs)),
                row=Row(
                    kind="region",
                    phase=phase,
                    repeats=len(one),
                    baseline=sides[0],
                    candidate=sides[1],
                    ratio=None if estimate is None else estimate.interval(confidence),
                    duration_ratio=None if time is None else time.interval(confidence),
                    excess=_excess(*sides),
                    group=number,
                ),
            )


def _repetitions(
    matching: Matching, group: RegionGroup
) -> Iterator[tuple[Phase, list[tuple[OpId, ...]], list[tuple[OpId, ...]]]]:
    """A group's members by phase: a row belongs to one phase, whatever the group spans."""
    regions = [matching.regions[index] for index in group.regions]
    for phase in dict.fromkeys(region.phase for region in regions):
        members = [region for region in regions if region.phase == phase]
        yield phase, [member.baseline for member in members], [member.candidate for member in members]


def _filled(repetitions: Sequence[Sequence[OpId]]) -> list[Sequence[OpId]]:
    return [repetition for repetition in repetitions if repetition]


def _leftover_entries(side: Side, ledger: Ledger, leftovers: Sequence[Leftover]) -> Iterator[Entry]:
    """Rows for work that only this side does: equal work in numbered modules is one row."""
    by_module: dict[tuple[Phase, Unpaired, str], list[OpId]] = defaultdict(list)
    for leftover in leftovers:
        operator = ledger.profile.operators[leftover.op_id]
        by_module[operator.phase, leftover.reason, operator.module_path].append(leftover.op_id)
    alike: dict[tuple[Phase, Unpaired, str, tuple[str, ...]], list[list[OpId]]] = defaultdict(list)
    for (phase, reason, path), operators in by_module.items():
        names = tuple(ledger.profile.operators[op].name for op in operators)
        alike[phase, reason, any_layer(path), names].append(operators)
    for (phase, reason, _, _), repetitions in alike.items():
        cost = ledger.side(repetitions, phase)
        sign = 1 if side == "candidate" else -1
        operators = tuple(op for repetition in repetitions for op in repetition)
        yield Entry(
            least=ledger.least(operators),
            operators=(operators, ()) if side == "baseline" else ((), operators),
            row=Row(
                kind="leftover",
                phase=phase,
                repeats=len(repetitions),
                baseline=cost if side == "baseline" else None,
                candidate=cost if side == "candidate" else None,
                ratio=None,
                duration_ratio=None,
                excess=None if cost.cost is None else sign * cost.cost.value,
                reason=reason,
            ),
        )


def _unread_entries(baseline: Ledger, candidate: Ledger, phase: Phase) -> Iterator[Entry]:
    """A row for the operators that the meter could not read, where there are any. It adds nothing."""
    sides = tuple(_unread_side(ledger, phase) for ledger in (baseline, candidate))
    if any(sides):
        one, other = sides
        yield Entry(
            row=Row(
                kind="unread",
                phase=phase,
                repeats=1,
                baseline=one,
                candidate=other,
                ratio=None,
                duration_ratio=None,
                excess=None,
            )
        )


def _unread_side(ledger: Ledger, phase: Phase) -> SideCost | None:
    operators = [
        operator.op_id
        for operator, unread in zip(ledger.profile.operators, ledger.unread, strict=True)
        if unread and operator.phase == phase
    ]
    if not operators:
        return None
    return SideCost(
        work=describe_work(ledger.profile, [operators], ledger.weight),
        executions=len(operators),
        unread=len(operators),
        unread_share=1.0,
        cost=None,
        share=None,
        duration_s=ledger.timeline_s(operators),
    )


def _residual_entry(baseline: Ledger, candidate: Ledger, phase: Phase, rows: Sequence[Row]) -> Entry:
    sides = (
        _residual_side(baseline, phase, [row.baseline for row in rows]),
        _residual_side(candidate, phase, [row.candidate for row in rows]),
    )
    return Entry(
        row=Row(
            kind="residual",
            phase=phase,
            repeats=1,
            baseline=sides[0],
            candidate=sides[1],
            ratio=None,
            duration_ratio=None,
            excess=_excess(*sides),
            scopes=scope_rows(baseline, candidate, phase),
        )
    )


def _residual_side(ledger: Ledger, phase: Phase, sides: Sequence[SideCost | None]) -> SideCost:
    """The clean total minus the attributed rows; its interval takes the extremes of both."""
    total = ledger.total(phase)
    residual = None
    if total is not None:
        attributed = sum(side.cost.value for side in sides if side is not None and side.cost is not None)
        alike = math.isclose(attributed, total.value, rel_tol=ROUNDING)
        value = 0.0 if alike else total.value - attributed
        operators = [operator.op_id for operator in ledger.profile.operators if operator.phase == phase]
        low, high = ledger.beyond(phase, operators) or (value, value)
        residual = Quantity(
            value=value, low=min(low, value), high=max(high, value), n=total.n, provenance=total.provenance
        )
    return SideCost(
        work=None,
        executions=0,
        unread=0,
        unread_share=0.0,
        cost=residual,
        share=share_of(residual, total),
        duration_s=None,
    )


def _excess(baseline: SideCost, candidate: SideCost) -> float | None:
    if baseline.cost is None or candidate.cost is None:
        return None
    return candidate.cost.value - baseline.cost.value


def _estimate(
    baseline: tuple[Sequence[int], NDArray[np.float64] | None],
    candidate: tuple[Sequence[int], NDArray[np.float64] | None],
    *,
    paired: bool,
    ledgers: tuple[Ledger, Ledger] | None = None,
) -> RatioEstimate | None:
    """Candidate over baseline: costs as ``ledgers`` have them, without any durations.

    Paired sides are compared over the rounds that both have; draws are always pairs.
    """
    drawn = ledgers is not None and ledgers[0].spread is Spread.DRAWS
    one, other = known_rounds(*baseline), known_rounds(*candidate)
    if paired or drawn:
        one, other = common_rounds(one, other)
    if not one or not other:
        return None
    figures = tuple(one.values()), tuple(other.values())
    if ledgers is None:
        return estimate_ratio(*figures, paired=paired)
    return estimate_ratio(
        *figures,
        paired=paired,
        provenance=ledgers[0].provenance,
        spread=ledgers[0].spread,
        window_error=error_of_either(*(ledger.window_error for ledger in ledgers)),
    )
