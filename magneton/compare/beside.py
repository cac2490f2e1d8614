"""What is told beside the cost of a step and never added to it: net energy, the host's energy.

A device that waits for its host looks the same whether the host sleeps or spins meanwhile; the host's own
energy tells (pytorch-28224: a busy-waiting synchronisation, unseen by whoever measures the board alone).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from magneton.compare.conditions import pairs_apart
from magneton.compare.findings import inverse
from magneton.compare.model import Beside, Criteria, Difference, HostFinding, Outcome, PhaseTotals, Side
from magneton.profile.beside import host_costs_j, net_costs_j
from magneton.profile.cost import clean_costs, mean_over_rounds
from magneton.profile.model import Profile
from magneton.profile.origin import MeterInfo
from magneton.quantity import Quantity
from magneton.statistics import (
    RatioEstimate,
    common_rounds,
    error_of_either,
    estimate_ratio,
    holm,
    known_rounds,
    summarise,
)
from magneton.workload import Phase

Rounds = tuple[Sequence[int], NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEntry:
    """The host's energy of one phase with the statistics behind its ratio."""

    phase: Phase
    beside: Beside
    estimate: RatioEstimate | None
    scale_high: float = 1.0  # by how much the meter may tell too little


def net_j(profile: Profile, phase: Phase) -> Quantity | None:
    """Energy of a step above the device at rest; None where rest was not measured."""
    costs = net_costs_j(profile, phase)
    return None if costs is None else _summary((costs.rounds, costs.cost), _net_meter(profile, phase))


def host_j(profile: Profile, phase: Phase) -> Quantity | None:
    """The host's energy of a step; None where no host was measured beside a device."""
    meter = profile.origin.host_meter
    return None if meter is None else _summary(host_costs_j(profile, phase), meter)


def net_of_rest(baseline: Profile, candidate: Profile, phase: Phase, *, paired: bool) -> Beside | None:
    """Energy of a step above each side's own power at rest; None where neither side was measured at rest."""
    sides = [net_costs_j(profile, phase) for profile in (baseline, candidate)]
    rounds = [None if costs is None else (costs.rounds, costs.cost) for costs in sides]
    if rounds == [None, None]:
        return None
    meters = _net_meter(baseline, phase), _net_meter(candidate, phase)
    apart = pairs_apart(baseline, candidate, phase).rounds if paired else frozenset[int]()
    return _beside(rounds[0], rounds[1], meters, paired=paired, apart=apart)[0]


def host_entry(baseline: Profile, candidate: Profile, phase: Phase, *, paired: bool) -> HostEntry | None:
    """The host's energy of a step, with a ratio where one meter read both; None where neither side has it."""
    one, other = baseline.origin.host_meter, candidate.origin.host_meter
    if one is None and other is None:
        return None
    if one is None or other is None or one != other:  # a measured and a modelled host have no ratio
        told = Beside(baseline=host_j(baseline, phase), candidate=host_j(candidate, phase), ratio=None)
        return HostEntry(phase=phase, beside=told, estimate=None)
    sides = host_costs_j(baseline, phase), host_costs_j(candidate, phase)
    beside, estimate = _beside(*sides, (one, other), paired=paired)
    return HostEntry(phase=phase, beside=beside, estimate=estimate, scale_high=one.scale_high)


def beside(total: PhaseTotals, net: Beside | None, host: HostEntry | None) -> PhaseTotals:
    """``total`` with what is told beside it."""
    return replace(total, net=net, host=None if host is None else host.beside)


def find_host(
    entries: Sequence[HostEntry],
    totals: Sequence[PhaseTotals],
    criteria: Criteria,
    causes: tuple[Difference, ...],
) -> tuple[HostFinding, ...]:
    """Phases in which one host surely spends more than the other, beyond the threshold.

    An excess that would be too small a share of the device's step, even if the host's meter tells as much
    too little as it may, is not worth the reader's time. That asks for a size and mixes no figures.
    """
    by_phase = {total.phase: total for total in totals}
    tested = [
        (entry, entry.estimate)
        for entry in entries
        if entry.estimate is not None and _matters(entry, by_phase[entry.phase], criteria.min_share)
    ]
    p_values = holm([estimate.p_beyond(criteria.threshold) for _, estimate in tested])
    level = (1 - criteria.confidence) / 2
    return tuple(
        _finding(entry, estimate, by_phase[entry.phase], criteria, causes)
        for (entry, estimate), p in zip(tested, p_values, strict=True)
        if p < level
    )


def _matters(entry: HostEntry, total: PhaseTotals, min_share: float) -> bool:
    step_j = max((cost.value for cost in (total.baseline_cost, total.candidate_cost) if cost), default=0.0)
    return _excess_j(entry.beside) * entry.scale_high >= min_share * step_j


def _excess_j(beside: Beside) -> float:
    one, other = beside.baseline, beside.candidate
    return 0.0 if one is None or other is None else abs(other.value - one.value)


def _net_meter(profile: Profile, phase: Phase) -> MeterInfo:
    """The meter as net energy knows it: what a window is off by is a larger part of less energy."""
    meter, net = profile.origin.meter, net_costs_j(profile, phase)
    gross_j = float(mean_over_rounds(clean_costs(profile, phase).cost))
    net_j = gross_j if net is None else float(mean_over_rounds(net.cost))
    return replace(meter, window_error=meter.window_error * gross_j / net_j) if net_j > 0 else meter


def _finding(
    entry: HostEntry,
    estimate: RatioEstimate,
    total: PhaseTotals,
    criteria: Criteria,
    causes: tuple[Difference, ...],
) -> HostFinding:
    costly: Side = "candidate" if estimate.log_ratio > 0 else "baseline"
    ratio = estimate.interval(criteria.confidence)
    return HostFinding(
        phase=entry.phase,
        outcome=_outcome(total, costly, criteria),
        costly=costly,
        excess_j=_excess_j(entry.beside),
        ratio=ratio if costly == "candidate" else inverse(ratio),
        device_alike=_alike(total.cost_ratio, criteria.threshold),
        causes=causes,
    )


def _outcome(total: PhaseTotals, costly: Side, criteria: Criteria) -> Outcome:
    """Slower on the lean side is a bargain and no waste: a host that spins answers sooner."""
    ratio = total.duration_ratio
    if ratio is None:
        return "waste"
    limit = 1 + criteria.slower_limit
    slower = ratio.low > limit if costly == "baseline" else ratio.high < 1 / limit
    return "trade-off" if slower else "waste"


def _alike(ratio: Quantity | None, threshold: float) -> bool:
    """Whether the devices surely differ by less than the threshold."""
    return ratio is not None and 1 / (1 + threshold) < ratio.low <= ratio.high < 1 + threshold


def _beside(
    one: Rounds | None,
    other: Rounds | None,
    meters: tuple[MeterInfo, MeterInfo],
    *,
    paired: bool,
    apart: frozenset[int] = frozenset(),
) -> tuple[Beside, RatioEstimate | None]:
    """Each side by its own meter. ``apart``: rounds that are no pairs."""
    estimate = None
    if one is not None and other is not None:
        alike = {r: figure for r, figure in known_rounds(*one).items() if r not in apart}
        estimate = _estimate(alike, known_rounds(*other), meters, paired=paired)
    return (
        Beside(
            baseline=_summary(one, meters[0]),
            candidate=_summary(other, meters[1]),
            ratio=None if estimate is None else estimate.interval(),
        ),
        estimate,
    )


def _estimate(
    one: dict[int, float], other: dict[int, float], meters: tuple[MeterInfo, MeterInfo], *, paired: bool
) -> RatioEstimate | None:
    if paired:
        one, other = common_rounds(one, other)
    if not one or not other:
        return None
    return estimate_ratio(
        tuple(one.values()),
        tuple(other.values()),
        paired=paired,
        provenance=meters[0].provenance,
        window_error=error_of_either(meters[0].window_error, meters[1].window_error),
    )


def _summary(rounds: Rounds | None, meter: MeterInfo) -> Quantity | None:
    known = [] if rounds is None else list(known_rounds(*rounds).values())
    return summarise(known, meter.provenance, window_error=meter.window_error) if known else None
