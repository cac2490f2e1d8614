"""What each operator and each step cost, round by round, in the unit of the profile's meter.

The one place that knows where a cost comes from: for a counting meter from the operators' counts (one
noise-free round), for the model of a device from the same counts and draws of its coefficients, for other
joules from the replay readings of an operator's key and from the clean blocks.
Nothing is rescaled and no gap is filled: what was not read is nan here, and belongs to the residual.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from magneton.profile.model import Operator, Profile, ReplayReading
from magneton.profile.modelling import modelled_j
from magneton.profile.origin import Unit
from magneton.statistics import Spread
from magneton.workload import Phase


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OperatorCosts:
    """Cost of one execution of each operator. Row r is round ``rounds[r]``; column k is operator k.

    With a spread of draws, a row is what possible coefficients make of everything, and not a repetition.
    """

    rounds: tuple[int, ...]  # ascending
    cost: NDArray[np.float64]  # [R, N], nan where an operator's key has no reading in that round
    unit: Unit
    spread: Spread = Spread.ROUNDS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepCosts:
    """Cost and duration of one step of a phase in the clean pass: the truth that all else must add up to."""

    rounds: tuple[int, ...]  # ascending
    cost: NDArray[np.float64]  # [R], nan where the meter gave no reading
    duration_s: NDArray[np.float64]  # [R], nan where no clean block was run
    unit: Unit


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attribution:
    """How one phase's cost per step divides up: sum(cost) + unattributed == total, whatever was read.

    ``unattributed`` is the residual and may be negative; it is nan, like ``total``, where no clean block
    has a reading. ``unread`` operators count as nothing in ``attributed``.
    """

    total: float
    cost: NDArray[np.float64]  # [operators of the phase], mean over rounds, nan where unread
    attributed: float
    unattributed: float
    unread: tuple[int, ...]  # op ids


def count_of(operator: Operator, unit: Unit) -> int:
    """What a counting meter of this unit says about one execution."""
    if unit == "FLOP":
        return operator.flops
    if unit == "B":
        return operator.bytes_moved
    if unit == "operators":
        return 1
    raise ValueError(f"{unit} is read by a meter, not counted")


def operator_costs(profile: Profile) -> OperatorCosts:
    """Cost per execution of every operator, in every round of the replay pass, or for every draw.

    Readings are per key; where a round has several of one key, each counts by its executions.
    """
    unit, device = profile.origin.meter.unit, profile.origin.meter.device
    if device is not None:
        drawn_j = modelled_j(profile, device)
        return OperatorCosts(rounds=tuple(range(len(drawn_j))), cost=drawn_j, unit=unit, spread=Spread.DRAWS)
    if unit != "J":
        counts = np.array([[count_of(operator, unit) for operator in profile.operators]], dtype=np.float64)
        return OperatorCosts(rounds=(0,), cost=counts, unit=unit)
    rounds = tuple(sorted({replay.round for replay in profile.replays}))
    return OperatorCosts(rounds=rounds, cost=_replayed(profile, rounds, lambda it: it.energy_j), unit=unit)


def replayed_s(profile: Profile, rounds: Sequence[int]) -> NDArray[np.float64]:
    """[R, N] duration of one execution of every operator in these rounds of replay; nan without a reading."""
    return _replayed(profile, rounds, lambda it: it.duration_s)


def _replayed(
    profile: Profile, rounds: Sequence[int], figure: Callable[[ReplayReading], float | None]
) -> NDArray[np.float64]:
    """[R, N] a figure per execution, by the operators' keys; several readings weigh by their executions."""
    row_of = {round_: row for row, round_ in enumerate(rounds)}
    sums = np.zeros((len(rounds), len(profile.keys)))
    executions = np.zeros_like(sums)
    for replay in profile.replays:
        found, row = figure(replay), row_of.get(replay.round)
        if found is not None and row is not None:
            sums[row, replay.key_id] += found * replay.executions
            executions[row, replay.key_id] += replay.executions
    by_key = np.where(executions > 0, sums / np.maximum(executions, 1), np.nan)
    return by_key[:, np.array([operator.key_id for operator in profile.operators], dtype=np.intp)]


def clean_costs(profile: Profile, phase: Phase, known: OperatorCosts | None = None) -> StepCosts:
    """Cost and duration per step of ``phase``, by round of the clean pass.

    A counting meter's blocks carry no energy: each round then costs the sum of the phase's counts, and
    there is one round even where no clean block was run. The model of a device gives a sum for each draw,
    and no durations: those of clean blocks would be of the machine that recorded. ``known`` are the
    profile's operator costs where they have been computed: those of many operators take seconds.
    """
    unit = profile.origin.meter.unit
    if profile.origin.meter.device is not None:
        return _drawn_costs(profile, phase, known or operator_costs(profile))
    blocks = [block for block in profile.blocks if block.pass_ == "clean" and block.phase == phase]
    rounds = tuple(sorted({block.round for block in blocks}))
    by_round = [[block for block in blocks if block.round == round_] for round_ in rounds]
    duration_s = [_per_step((block.duration_s, block.steps) for block in group) for group in by_round]
    if unit == "J":
        cost = [_per_step((block.energy_j, block.steps) for block in group) for group in by_round]
    else:
        counted = sum(count_of(operator, unit) for operator in profile.operators if operator.phase == phase)
        cost = [float(counted)] * max(1, len(rounds))
        rounds, duration_s = (rounds, duration_s) if rounds else ((0,), [np.nan])
    return StepCosts(rounds=rounds, cost=np.array(cost), duration_s=np.array(duration_s), unit=unit)


def _drawn_costs(profile: Profile, phase: Phase, costs: OperatorCosts) -> StepCosts:
    """All that is in a step is its operators."""
    ids = [operator.op_id for operator in profile.operators if operator.phase == phase]
    cost = costs.cost[:, ids].sum(axis=1)
    return StepCosts(rounds=costs.rounds, cost=cost, duration_s=np.full_like(cost, np.nan), unit=costs.unit)


def attribute(profile: Profile, phase: Phase) -> Attribution:
    """The phase's mean cost per step, divided over its operators; the rest is unattributed."""
    ids = [operator.op_id for operator in profile.operators if operator.phase == phase]
    cost = mean_over_rounds(operator_costs(profile).cost)[ids]
    attributed = float(np.nansum(cost))
    modelled = profile.origin.meter.device is not None  # then all of a step is its operators, to the last bit
    total = attributed if modelled else float(mean_over_rounds(clean_costs(profile, phase).cost))
    return Attribution(
        total=total,
        cost=cost,
        attributed=attributed,
        unattributed=total - attributed,
        unread=tuple(op_id for op_id, figure in zip(ids, cost, strict=True) if np.isnan(figure)),
    )


def mean_over_rounds(cost: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the first axis of what was read; nan where nothing was."""
    read = ~np.isnan(cost)
    counts = read.sum(axis=0)
    sums = np.where(read, cost, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _per_step(figures: Iterable[tuple[float | None, int]]) -> float:
    """Sum over sum of steps; blocks without a reading are left out, nan where none has one."""
    read: Sequence[tuple[float, int]] = [(figure, steps) for figure, steps in figures if figure is not None]
    if not read:
        return float("nan")
    return sum(figure for figure, _ in read) / sum(steps for _, steps in read)
