"""Which rows count: the excess is clear of the threshold, worth the reader's time, and no bargain for speed.

A region is *waste* if the costly side spends more than the threshold above the lean side, the interval
clear of it (Holm's correction over the regions of a comparison), the excess at least the minimal share of
the step, and the lean side not slower. Slower but leaner is a *trade-off*. Where the interval spans the
threshold and enough could hide there, the row is *unresolved*.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from magneton.compare.account import Entry
from magneton.compare.causes import candidate_causes, classify, is_one_system
from magneton.compare.model import Criteria, Difference, Finding, Outcome, PhaseTotals, Row, Side, SideCost
from magneton.profile.origin import Origin
from magneton.quantity import Quantity
from magneton.statistics import holm
from magneton.workload import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A row that counts, before it is told why."""

    row: int
    outcome: Outcome
    costly: Side
    note: str = ""


def find(
    entries: Sequence[Entry],
    totals: Sequence[PhaseTotals],
    criteria: Criteria,
    origins: tuple[Origin, Origin],
    differences: tuple[Difference, ...],
) -> tuple[Finding, ...]:
    """Every row that counts, waste before trade-offs before unresolved, the largest excess first."""
    by_phase = {total.phase: total for total in totals}
    judged = [*_judge_regions(entries, by_phase, criteria), *_judge_leftovers(entries, by_phase, criteria)]
    causes = candidate_causes(*origins, differences)
    one_system = is_one_system(*origins)
    findings = [
        _describe(judgement, entries[judgement.row], by_phase, causes, one_system=one_system)
        for judgement in judged
    ]
    rank = {"waste": 0, "trade-off": 1, "unresolved": 2}
    return tuple(sorted(findings, key=lambda finding: (rank[finding.outcome], -finding.excess_share)))


def _judge_regions(
    entries: Sequence[Entry], totals: dict[Phase, PhaseTotals], criteria: Criteria
) -> list[Judged]:
    """Ratios are one family of tests; where one side has no cost at all there is nothing to test."""
    clear = _clear_of_threshold(entries, criteria)
    judged: list[Judged] = []
    for index, entry in enumerate(entries):
        row = entry.row
        if row.kind == "region" and entry.estimate is not None:
            outcome = _outcome(row, index in clear, totals[row.phase], criteria)
            if outcome is not None:
                judged.append(Judged(row=index, outcome=outcome[0], costly=_costly(row), note=outcome[1]))
    return judged + _judge_one_sided(entries, totals, criteria)


def _clear_of_threshold(entries: Sequence[Entry], criteria: Criteria) -> frozenset[int]:
    """Regions whose ratio is surely beyond the threshold.

    The family holds regions that are big enough and whose estimate is beyond the threshold. A region at
    the threshold gets in with probability 1/2, which at most doubles the level; so the level is half of
    what the confidence leaves, and all regions together are wrong no more often than the confidence says.
    """
    family = [
        (index, p)
        for index, entry in enumerate(entries)
        if entry.row.kind == "region"
        and entry.estimate is not None
        and _largest_share(entry.row) >= criteria.min_share
        and (p := entry.estimate.p_beyond(criteria.threshold)) < 0.5
    ]
    level = (1 - criteria.confidence) / 2
    adjusted = holm([p for _, p in family])
    return frozenset(index for (index, _), p in zip(family, adjusted, strict=True) if p < level)


def _outcome(row: Row, clear: bool, total: PhaseTotals, criteria: Criteria) -> tuple[Outcome, str] | None:
    """What a region is, and why if unresolved. ``clear``: its interval is beyond the threshold."""
    costly = _costly(row)
    lean = sides_of(row, costly)[1]
    step = _step(total, costly)
    if step is None or lean.cost is None:
        return None
    ratio = costly_over_lean(row, costly)
    if clear and abs(row.excess or 0.0) >= criteria.min_share * step:
        if ratio.low * _read_part(lean) <= 1 + criteria.threshold:  # the lean side's cost is not all there
            return "unresolved", f"{lean.unread} executions of the lean side have no reading"
        time = _lean_over_costly(row.duration_ratio, costly)
        traded = time is not None and time.low > 1 + criteria.slower_limit
        return ("trade-off" if traded else "waste"), ""
    upper = ratio.value if math.isinf(ratio.high) else ratio.high
    possible = lean.cost.value * (upper - 1)
    if clear or upper <= 1 + criteria.threshold or possible < criteria.min_share * step:
        return None
    if ratio.low > 1 + criteria.threshold:
        return "unresolved", "the interval is clear of the threshold, but not for so many regions at once"
    return "unresolved", "the interval spans the threshold"


def _judge_one_sided(
    entries: Sequence[Entry], totals: dict[Phase, PhaseTotals], criteria: Criteria
) -> list[Judged]:
    """Regions whose values one side gets for nothing: there is no ratio, only the cost."""
    judged: list[Judged] = []
    for index, entry in enumerate(entries):
        row = entry.row
        if row.kind == "region" and entry.estimate is None and row.excess:
            costly: Side = "candidate" if row.excess > 0 else "baseline"
            lean = sides_of(row, costly)[1]
            if lean.cost is not None and lean.cost.high == 0 and lean.unread == 0:
                judged += _judge_excess(index, entry, costly, totals[row.phase], criteria, elsewhere=0.0)
    return judged


def _judge_leftovers(
    entries: Sequence[Entry], totals: dict[Phase, PhaseTotals], criteria: Criteria
) -> list[Judged]:
    """Work that only one side does, above what the other side left unmatched in the same phase."""
    judged: list[Judged] = []
    leftovers = [(index, entry) for index, entry in enumerate(entries) if entry.row.kind == "leftover"]
    unmatched: dict[tuple[Phase, Side], float] = defaultdict(float)
    for _, entry in leftovers:
        unmatched[entry.row.phase, _only_side(entry.row)] += abs(entry.row.excess or 0.0)
    for index, entry in leftovers:
        phase, costly = entry.row.phase, _only_side(entry.row)
        elsewhere = unmatched[phase, "candidate" if costly == "baseline" else "baseline"]
        judged += _judge_excess(index, entry, costly, totals[phase], criteria, elsewhere=elsewhere)
    return judged


def _only_side(row: Row) -> Side:
    return "baseline" if row.candidate is None else "candidate"


def _judge_excess(
    index: int, entry: Entry, costly: Side, total: PhaseTotals, criteria: Criteria, *, elsewhere: float
) -> list[Judged]:
    """``elsewhere`` is what the other side spends on work without a partner: it may be this very work."""
    cost, step = sides_of(entry.row, costly)[0].cost, _step(total, costly)
    if cost is None or step is None or cost.value < criteria.min_share * step:
        return []
    note = ""
    if entry.least < criteria.min_share * step:
        note = "the interval spans the smallest share that counts"
    elif entry.least - elsewhere < criteria.min_share * step:
        note = "the other side has work without a partner too, which may be the same work"
    return [Judged(row=index, outcome="unresolved" if note else "waste", costly=costly, note=note)]


def _describe(
    judgement: Judged,
    entry: Entry,
    totals: dict[Phase, PhaseTotals],
    causes: tuple[Difference, ...],
    *,
    one_system: bool,
) -> Finding:
    row = entry.row
    kind, reason = classify(row, judgement.costly, causes, one_system=one_system)
    if judgement.outcome == "unresolved":
        kind, reason = "unclassified", "whether there is a difference is open"
    excess = abs(row.excess or 0.0)
    step = _step(totals[row.phase], judgement.costly)
    return Finding(
        row=judgement.row,
        outcome=judgement.outcome,
        kind=kind,
        kind_reason=reason,
        costly=judgement.costly,
        excess=excess,
        excess_share=excess / step if step else 0.0,
        ratio=None if row.ratio is None else costly_over_lean(row, judgement.costly),
        duration_ratio=_lean_over_costly(row.duration_ratio, judgement.costly),
        causes=causes,
        operators=entry.operators[0 if judgement.costly == "baseline" else 1],
        note=judgement.note,
    )


def sides_of(row: Row, costly: Side) -> tuple[SideCost, SideCost]:
    """The costly and the lean side of a row; a side that the row does not have does nothing."""
    nothing = SideCost(
        work=None, executions=0, unread=0, unread_share=0.0, cost=None, share=None, duration_s=None
    )
    one, other = row.baseline or nothing, row.candidate or nothing
    return (one, other) if costly == "baseline" else (other, one)


def costly_over_lean(row: Row, costly: Side) -> Quantity:
    """A row's ratio of costs the way round that is above 1."""
    if row.ratio is None:
        raise ValueError(f"a {row.kind} row without a ratio")
    return row.ratio if costly == "candidate" else inverse(row.ratio)


def inverse(ratio: Quantity) -> Quantity:
    """Baseline over candidate from candidate over baseline."""
    value = 1 / ratio.value
    low = 1 / ratio.high if math.isfinite(ratio.high) else -math.inf
    high = 1 / ratio.low if math.isfinite(ratio.low) and ratio.low > 0 else math.inf
    return Quantity(
        value=value, low=min(low, value), high=max(high, value), n=ratio.n, provenance=ratio.provenance
    )


def _costly(row: Row) -> Side:
    return "candidate" if row.ratio is not None and row.ratio.value > 1 else "baseline"


def _largest_share(row: Row) -> float:
    return max((side.share or 0.0) for side in (row.baseline, row.candidate) if side is not None)


def _step(total: PhaseTotals, side: Side) -> float | None:
    cost = total.baseline_cost if side == "baseline" else total.candidate_cost
    return cost.value if cost is not None and cost.value > 0 else None


def _read_part(side: SideCost) -> float:
    """The part of a side's time that its cost accounts for; 0 where that is not known."""
    return 0.0 if side.unread_share is None else max(0.0, 1 - side.unread_share)


def _lean_over_costly(ratio: Quantity | None, costly: Side) -> Quantity | None:
    """A candidate-over-baseline ratio the way round that is above 1 where the lean side takes more."""
    if ratio is None or costly == "baseline":
        return ratio
    return inverse(ratio)
