"""The costs of one side, ready to be summed over any set of its operators."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from magneton.compare.model import SideCost
from magneton.compare.places import describe_work
from magneton.profile.cost import StepCosts, clean_costs, mean_over_rounds, operator_costs, replayed_s
from magneton.profile.model import OpId, Profile
from magneton.quantity import Provenance, Quantity
from magneton.statistics import Spread, summarise
from magneton.workload import Phase

COSTS_SOMETHING = ("compute", "random", "sync")  # an unread view or allocation leaves no gap worth a warning

Repetitions = Sequence[Sequence[OpId]]


class Ledger:
    """Sums over operators, round by round. A gap in one round is filled with the operator's mean over the
    others, which leaves every mean as it was; an operator without any reading counts for nothing.
    Where joules come from the model of a device, rounds are draws of its coefficients.

    Durations are those of the replay, round by round like the costs, so that either can be compared.
    """

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.provenance = profile.origin.meter.provenance
        costs = self._costs = operator_costs(profile)
        self.rounds = costs.rounds
        self.spread = costs.spread
        self.window_error = profile.origin.meter.window_error
        self.mean = mean_over_rounds(costs.cost)  # [N], nan where never read
        self._cost = _filled(costs.cost)  # [R, N]

    @cached_property
    def steps(self) -> dict[Phase, StepCosts]:
        """The clean pass of each phase."""
        return {
            phase: clean_costs(self.profile, phase, self._costs)
            for phase in self.profile.origin.workload.phases
        }

    @cached_property
    def unread(self) -> NDArray[np.bool_]:
        """[N] operators that should have a reading and have none."""
        matters = [operator.effect in COSTS_SOMETHING for operator in self.profile.operators]
        return np.isnan(self.mean) & np.array(matters, dtype=np.bool_)

    @cached_property
    def _replayed_s(self) -> NDArray[np.float64]:
        """[R, N] duration of one execution in replay; nan for an operator that was never replayed."""
        return _filled(replayed_s(self.profile, self.rounds))

    def seconds_by_round(self, operators: Sequence[OpId]) -> NDArray[np.float64] | None:
        """[R] duration of these operators together, over the same operators as ``by_round``."""
        ids = np.asarray(operators, dtype=np.intp)
        read = ids[~np.isnan(self.mean[ids])]
        seconds = self._replayed_s[:, read].sum(axis=1)
        return None if not read.size or np.isnan(seconds).any() else seconds

    def by_round(self, operators: Sequence[OpId]) -> NDArray[np.float64] | None:
        """[R] cost of these operators together; None where none of them was read."""
        ids = np.asarray(operators, dtype=np.intp)
        read = ids[~np.isnan(self.mean[ids])]
        return self._cost[:, read].sum(axis=1) if read.size else None

    def total(self, phase: Phase) -> Quantity | None:
        """Cost of one step in the clean pass."""
        return self._summary(self.steps[phase].cost)

    def duration_s(self, phase: Phase) -> Quantity | None:
        """Duration of one step in the clean pass: always a clock's, whatever the meter."""
        known = self.steps[phase].duration_s
        known = known[~np.isnan(known)]
        return summarise(known.tolist(), Provenance.MEASURED) if known.size else None

    def attributed(self, operators: Sequence[OpId]) -> Quantity | None:
        rounds = self.by_round(operators)
        return None if rounds is None else self._summary(rounds)

    def least(self, operators: Sequence[OpId]) -> float:
        """The lower end of their cost; of draws, the lower end of their part of the step they belong to."""
        rounds = self.by_round(operators)
        if rounds is None:
            return 0.0
        if self.spread is Spread.DRAWS:
            step = self.steps[self.profile.operators[operators[0]].phase].cost
            part = self._summary(np.divide(rounds, step, out=np.zeros_like(step), where=step > 0))
            return 0.0 if part is None else part.low * float(step.mean())
        cost = self._summary(rounds)
        return 0.0 if cost is None else cost.low

    def beyond(self, phase: Phase, operators: Sequence[OpId]) -> tuple[float, float] | None:
        """Between which bounds the phase's total less the cost of ``operators`` lies.

        Total and operators are read apart, so the bounds take the extremes of both; in a draw they are one
        calculation, and are subtracted draw by draw.
        """
        total, attributed, rounds = self.total(phase), self.attributed(operators), self.by_round(operators)
        if total is None:
            return None
        if self.spread is Spread.DRAWS:
            left = self._summary(self.steps[phase].cost - (0.0 if rounds is None else rounds))
            return None if left is None else (left.low, left.high)
        return (
            total.low - (attributed.high if attributed else 0.0),
            total.high - (attributed.low if attributed else 0.0),
        )

    def side(self, repetitions: Repetitions, phase: Phase) -> SideCost:
        """These operators as one side of a row. A side that does nothing is known to cost nothing."""
        operators = [op for repetition in repetitions for op in repetition]
        nothing = Quantity(value=0.0, low=0.0, high=0.0, n=1, provenance=self.provenance)
        if not operators:
            return SideCost(
                work=None, executions=0, unread=0, unread_share=0.0, cost=nothing, share=0.0, duration_s=0.0
            )
        gaps = [op for op in operators if self.unread[op]]
        cost = self.attributed(operators)
        if cost is None and not gaps:  # views and allocations only, which the meter passed over
            cost = nothing
        return SideCost(
            work=describe_work(self.profile, repetitions, self.weight),
            executions=len(operators),
            unread=len(gaps),
            unread_share=self._time_share(gaps, operators),
            cost=cost,
            share=share_of(cost, self.total(phase)),
            duration_s=self._duration_of(operators),
        )

    def timeline_s(self, operators: Sequence[OpId]) -> float | None:
        """Their duration in the timeline pass; None where one of them was not seen there."""
        seen = [self.profile.operators[op].duration_s for op in operators]
        known = [duration_s for duration_s in seen if duration_s is not None]
        return sum(known) if len(known) == len(seen) else None

    def _duration_of(self, operators: Sequence[OpId]) -> float | None:
        """In replay, else in the timeline pass."""
        seconds = self.seconds_by_round(operators)
        return self.timeline_s(operators) if seconds is None else float(seconds.mean())

    def _time_share(self, some: Sequence[OpId], operators: Sequence[OpId]) -> float | None:
        """How much of the operators' time in the timeline pass is that of ``some`` of them."""
        if not some:
            return 0.0
        part_s, whole_s = self.timeline_s(some), self.timeline_s(operators)
        return None if part_s is None or not whole_s else part_s / whole_s

    def weight(self, operator: OpId) -> tuple[float, float, int]:
        """Larger for what costs more, or where nothing was read lasts longer; the first wins ties."""
        cost = float(np.nan_to_num(self.mean[operator]))
        return cost, self.profile.operators[operator].duration_s or 0.0, -operator

    def _summary(self, readings: NDArray[np.float64]) -> Quantity | None:
        """The spread of the readings; how far the meter's scale may be off is common to all of them, and is
        told once, with the meter: widening every figure by it would hide the spread.
        """
        known = readings[~np.isnan(readings)]
        if not known.size:
            return None
        return summarise(known.tolist(), self.provenance, spread=self.spread, window_error=self.window_error)


def _filled(readings: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gaps in a column of rounds become the column's mean; a column without any reading stays nan."""
    gaps = np.isnan(readings)
    return np.where(gaps, mean_over_rounds(readings), readings) if gaps.any() else readings


def share_of(cost: Quantity | None, total: Quantity | None) -> float | None:
    """``cost`` as a fraction of ``total``; None where either was not measured."""
    if cost is None or total is None or total.value <= 0:
        return None
    return cost.value / total.value
