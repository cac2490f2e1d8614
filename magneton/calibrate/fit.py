"""From windows of known work to coefficients with ranges. Pure.

In: observations, each with its energy and the amounts of what it did. Out: for every term the energy of one
of it, by

    energy = constant power x duration + sum over terms of (energy of one x amount)

solved for coefficients that are not negative, with errors relative to each window's energy, for a meter
is off by a share and not by joules.

**Ranges** come from fitting again what might as well have been read: to what the model says of each window is
added a deviation that windows of the same benchmark showed among themselves, and one that is common to the
windows of a benchmark, as large as the model misses benchmarks beyond that (or as the meter admits). The
range is that of 95 % of these fits, times how far the scale of the meter may be off. What a range is worth
is held against planted coefficients by the tests.

**Determined** is a term that other terms cannot stand in for, that was read often enough, and whose range
is clear of zero and spans less than a factor of ten.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from magneton.calibrate.workbench import CONSTANT, LAUNCH, ZEROS
from magneton.errors import MagnetonError

LEAST_READINGS = 3  # of a term
WIDEST = 10.0  # high over low
DRAWS = 600
_TAIL = 2.5  # per cent on either side
_RANK = 1e-9  # of the largest singular value
_SHARE = 1e-6  # of a unit vector in directions that nothing was read of


class NotIdentifiable(MagnetonError):
    """The readings that are left do not say what the coefficients are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One window: which benchmark, what was read, and the amounts of all its repetitions together."""

    benchmark: str
    duration_s: float
    energy_j: float
    amounts: Mapping[str, float]

    def count(self, term: str) -> float:
        return self.duration_s if term == CONSTANT else self.amounts.get(term, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The energy of one of a term, in J (W for the constant power). ``doubt`` says why not to use it."""

    term: str
    value: float
    low: float
    high: float
    readings: int
    doubt: str = ""

    @property
    def determined(self) -> bool:
        return not self.doubt


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """``errors`` are the model's energy of each observation over what was read, less one."""

    terms: Mapping[str, Fitted]
    errors: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Problem:
    """Find x >= 0 with ``rows @ x`` near ones. Columns have length 1; x is coefficients times ``lengths``."""

    terms: tuple[str, ...]
    rows: NDArray[np.float64]
    lengths: NDArray[np.float64]
    groups: NDArray[np.intp]  # which benchmark a row belongs to


def fit(
    observations: Sequence[Observation],
    *,
    seed: int,
    scale: tuple[float, float] = (1.0, 1.0),
    window_error: float = 0.0,
    draws: int = DRAWS,
) -> Fit:
    """``scale`` bounds the truth over what the meter reads; ``window_error`` is its own, of a benchmark."""
    problem = _problem(observations)
    benchmarks = len(np.unique(problem.groups))
    if benchmarks <= len(problem.terms):
        raise NotIdentifiable(
            f"only {benchmarks} benchmarks could be read, which cannot tell {len(problem.terms)} "
            "coefficients apart",
            hint="see why windows were left out; a longer --budget or another --meter may read them",
        )
    solution = _solved(problem.rows, np.ones(len(problem.rows)))
    again = _refitted(problem, solution, seed=seed, window_error=window_error, draws=draws)
    low, high = np.percentile(again, (_TAIL, 100 - _TAIL), axis=0)
    mistaken = _mistaken(problem)
    fitted = {
        term: _fitted(
            term,
            value=solution[k] / problem.lengths[k],
            low=min(low[k], solution[k]) / problem.lengths[k] * scale[0],
            high=max(high[k], solution[k]) / problem.lengths[k] * scale[1],
            readings=int(np.count_nonzero(problem.rows[:, k])),
            mistaken=mistaken[term],
        )
        for k, term in enumerate(problem.terms)
    }
    _refuse_undetermined(fitted)
    return Fit(terms=fitted, errors=tuple(float(each) for each in problem.rows @ solution - 1))


def _refuse_undetermined(fitted: Mapping[str, Fitted]) -> None:
    if not fitted[CONSTANT].determined:
        raise NotIdentifiable(
            f"the constant power cannot be told: {fitted[CONSTANT].doubt}",
            hint="see that the device is otherwise at rest, and why windows were left out; then again",
        )
    if not any(each.determined for term, each in fitted.items() if _is_of_device(term)):
        raise NotIdentifiable(
            "the readings show a constant power, whatever the device did",
            hint="does the meter read this device? magneton doctor lists what it reads",
        )


def _is_of_device(term: str) -> bool:
    """Of the coefficients of a device, but for its constant power."""
    return term not in (CONSTANT, LAUNCH) and not term.endswith(ZEROS)


def _problem(observations: Sequence[Observation]) -> _Problem:
    """Terms in order of their names and rows in order of what they hold: the order given says nothing."""
    if not observations:
        raise NotIdentifiable(
            "no window was read", hint="magneton doctor says what the sensor of this device can do"
        )
    terms = tuple(sorted({CONSTANT, *(term for each in observations for term in each.amounts)}))
    energy_j = np.array([each.energy_j for each in observations])
    counts = np.array([[each.count(term) for term in terms] for each in observations], dtype=np.float64)
    rows = counts / energy_j[:, None]
    lengths = np.linalg.norm(rows, axis=0)
    _, groups = np.unique([each.benchmark for each in observations], return_inverse=True)
    return _Problem(terms=terms, rows=rows / lengths, lengths=lengths, groups=groups)


def _refitted(
    problem: _Problem, solution: NDArray[np.float64], *, seed: int, window_error: float, draws: int
) -> NDArray[np.float64]:
    """[draws, terms] solutions for what might as well have been read."""
    expected = problem.rows @ solution
    misses = 1 - expected
    number = np.bincount(problem.groups)
    centre = np.bincount(problem.groups, weights=misses) / number
    among = misses - centre[problem.groups]
    freedom = len(misses) - len(number)
    among *= math.sqrt(len(misses) / max(freedom, 1)) * _heavier(freedom)
    noise = float(np.mean(among**2))
    spare = len(number) - len(problem.terms)
    beyond = float(np.sum(centre**2)) / spare - noise * float(np.mean(1 / number))
    common = max(math.sqrt(max(beyond, 0.0)) * _heavier(spare), window_error)
    # In an order of their own, so that the same windows in another order are drawn alike.
    order = np.lexsort((misses, problem.groups))
    pool = np.sort(among)
    dice = np.random.default_rng(seed)
    again = np.empty((draws, len(problem.terms)))
    for draw in range(draws):
        shared = dice.normal(0.0, common, len(number))[problem.groups] if common else 0.0
        own = np.empty(len(misses))
        own[order] = dice.choice(pool, len(misses))
        again[draw] = _solved(problem.rows, expected + shared + own)
    return again


def _heavier(freedom: int) -> float:
    """Student's quantile over the normal one: a deviation known from few readings is known badly."""
    from scipy.special import ndtri, stdtrit

    return float(stdtrit(max(freedom, 1), 0.975) / ndtri(0.975))


def _solved(rows: NDArray[np.float64], readings: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.optimize import nnls

    solution, _ = nnls(rows, readings)
    return np.asarray(solution, dtype=np.float64)


def _mistaken(problem: _Problem) -> Mapping[str, tuple[str, ...]]:
    """For each term, those that could stand in for it: it lies partly in a direction that no row sees."""
    _, sizes, directions = np.linalg.svd(problem.rows, full_matrices=True)
    seen = np.zeros(len(directions), dtype=bool)
    seen[: len(sizes)] = sizes > _RANK * sizes[0]
    unseen = directions[~seen]
    found: dict[str, tuple[str, ...]] = {}
    for k, term in enumerate(problem.terms):
        through = unseen[np.abs(unseen[:, k]) > _SHARE]
        others = np.any(np.abs(through) > _SHARE, axis=0)
        found[term] = tuple(other for j, other in enumerate(problem.terms) if j != k and bool(others[j]))
    return found


def _fitted(
    term: str, *, value: float, low: float, high: float, readings: int, mistaken: tuple[str, ...]
) -> Fitted:
    doubt = ""
    if mistaken:
        doubt = f"cannot be told apart from {', '.join(mistaken)}"
    elif readings < LEAST_READINGS:
        doubt = f"only {readings} windows of it were read"
    elif low <= 0:
        doubt = "lost in the noise: zero explains the readings as well"
    elif high > WIDEST * low:
        doubt = f"known to a factor of {high / low:.0f} only"
    return Fitted(
        term=term,
        value=float(value),
        low=float(low),
        high=float(high),
        readings=readings,
        doubt=doubt,
    )
