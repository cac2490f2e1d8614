"""Intervals cover what they promise, one bad round does no harm, and counts have no noise."""

import itertools
import math
import statistics as plain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magneton.quantity import Provenance, Quantity
from magneton.statistics import CONFIDENCE, estimate_ratio, holm, summarise

MEASURED, MODELLED, COUNTED = Provenance.MEASURED, Provenance.MODELLED, Provenance.COUNTED

positive = st.floats(1e-9, 1e9)
rounds = st.lists(positive, min_size=2, max_size=12)
pairs = st.lists(st.tuples(positive, positive), min_size=2, max_size=12)
p_values = st.lists(st.floats(0, 1), max_size=12)


# --- summarise ----------------------------------------------------------------------------------------------


@given(rounds)
def test_the_mean_lies_inside_a_positive_interval(readings: list[float]) -> None:
    figure = summarise(readings, MEASURED)

    assert 0 < figure.low <= figure.value <= figure.high
    assert figure.value == pytest.approx(plain.fmean(readings))
    assert figure.n == len(readings)


def test_a_small_spread_gives_students_interval() -> None:
    figure = summarise([99.0, 100.0, 101.0], MEASURED)

    assert figure.low == pytest.approx(100 - 4.303 / math.sqrt(3), rel=1e-3)
    assert figure.high == pytest.approx(100 + 4.303 / math.sqrt(3), rel=1e-3)


def test_readings_around_zero_get_a_plain_interval() -> None:
    figure = summarise([-1.0, 0.0, 1.0], MEASURED)

    assert figure.low == pytest.approx(-4.303 / math.sqrt(3), rel=1e-3)
    assert figure.value == 0.0


def test_one_noisy_reading_is_unbounded() -> None:
    figure = summarise([3.0], MODELLED)

    assert (figure.low, figure.high, figure.n) == (-math.inf, math.inf, 1)


def test_counts_have_no_noise() -> None:
    figure = summarise([42.0, 42.0], COUNTED)

    assert figure.low == figure.value == figure.high == 42.0


@given(rounds, st.floats(1e-3, 1e3))
def test_k_times_the_readings_give_k_times_the_figure(readings: list[float], k: float) -> None:
    one, other = summarise(readings, MEASURED), summarise([k * reading for reading in readings], MEASURED)

    expected = one.scaled(k)
    assert [other.value, other.low, other.high] == pytest.approx(
        [expected.value, expected.low, expected.high]
    )


@pytest.mark.parametrize("readings", [[], [1.0, math.nan], [math.inf, 1.0]])
def test_gaps_must_be_left_out_before(readings: list[float]) -> None:
    with pytest.raises(ValueError, match="at least one reading"):
        summarise(readings, MEASURED)


# --- ratios -------------------------------------------------------------------------------------------------


def ratio_interval(
    baseline: list[float], candidate: list[float], *, paired: bool, confidence: float = CONFIDENCE
) -> Quantity | None:
    estimate = estimate_ratio(baseline, candidate, paired=paired)
    return None if estimate is None else estimate.interval(confidence)


def p_above(ratios: list[float], threshold: float) -> float:
    """Of rounds in which the baseline always cost 1."""
    estimate = estimate_ratio([1.0] * len(ratios), ratios, paired=True)
    assert estimate is not None
    return estimate.p_above(threshold)


@given(pairs, st.booleans())
def test_swapping_the_sides_turns_the_ratio_over(readings: list[tuple[float, float]], paired: bool) -> None:
    baseline, candidate = [pair[0] for pair in readings], [pair[1] for pair in readings]

    forth = estimate_ratio(baseline, candidate, paired=paired)
    back = estimate_ratio(candidate, baseline, paired=paired)

    assert forth is not None
    assert back is not None
    assert forth.log_ratio == pytest.approx(-back.log_ratio, abs=1e-9)
    assert forth.standard_error == pytest.approx(back.standard_error, abs=1e-9)
    if forth.standard_error > 1e-6:  # below, the two directions differ by rounding alone
        assert forth.p_above(0.1) == pytest.approx(back.p_below(0.1), abs=1e-6)


@given(st.lists(positive, min_size=2, max_size=9), st.floats(0.1, 10))
def test_a_drift_common_to_both_sides_cancels_in_pairs(baseline: list[float], k: float) -> None:
    ratio = ratio_interval(baseline, [k * reading for reading in baseline], paired=True)

    assert ratio is not None
    assert [ratio.low, ratio.value, ratio.high] == pytest.approx([k, k, k])


def test_one_preempted_round_moves_neither_centre_nor_width() -> None:
    baseline = [1.00, 1.01, 0.99, 1.02, 0.98, 1.00, 1.01]
    candidate = [1.20, 1.22, 1.18, 1.21, 1.19, 1.20, 1.23]
    spoiled = [*candidate[:-1], 12.0]

    quiet = ratio_interval(baseline, candidate, paired=True)
    noisy = ratio_interval(baseline, spoiled, paired=True)

    assert quiet is not None
    assert noisy is not None
    assert noisy.value == pytest.approx(quiet.value, rel=0.01)
    assert noisy.low > 1.1
    assert noisy.high - noisy.low < 3 * (quiet.high - quiet.low)


def test_one_round_says_nothing() -> None:
    estimate = estimate_ratio([1.0], [2.0], paired=True)

    assert estimate is not None
    assert estimate.interval().value == pytest.approx(2.0)
    assert (estimate.interval().low, estimate.interval().high) == (-math.inf, math.inf)
    assert estimate.p_above(0.1) == 1.0


def test_one_unpaired_round_says_nothing() -> None:
    estimate = estimate_ratio([1.0], [2.0, 2.01, 2.02], paired=False)

    assert estimate is not None
    assert estimate.interval().high == math.inf
    assert estimate.p_above(0.1) == 1.0


@pytest.mark.parametrize(("baseline", "candidate"), [([0.0, 1.0], [1.0, 1.0]), ([1.0], [-1.0])])
def test_no_ratio_with_what_is_not_positive(baseline: list[float], candidate: list[float]) -> None:
    assert ratio_interval(baseline, candidate, paired=False) is None


def test_pairs_need_as_many_rounds_on_either_side() -> None:
    with pytest.raises(ValueError, match="cannot pair"):
        ratio_interval([1.0, 2.0], [1.0], paired=True)


def test_a_ratio_of_counts_is_exact() -> None:
    estimate = estimate_ratio([100.0], [120.0], paired=False, provenance=COUNTED)

    assert estimate is not None
    ratio = estimate.interval()
    assert ratio.low == ratio.value == ratio.high == pytest.approx(1.2)
    assert (estimate.p_above(0.1), estimate.p_above(0.3), estimate.p_below(0.0)) == (0.0, 1.0, 1.0)


def test_recordings_made_apart_are_wider_than_pairs() -> None:
    readings = [1.0, 1.001, 0.999, 1.0005, 0.9995]

    paired = ratio_interval(readings, readings, paired=True)
    apart = ratio_interval(readings, readings, paired=False)

    assert paired is not None
    assert apart is not None
    assert paired.high - paired.low < 0.001
    assert apart.high - apart.low > 0.1  # the between-recordings term, +-6 %


# --- coverage -----------------------------------------------------------------------------------------------


def covered(n: int, *, outliers: int, paired: bool, trials: int = 1500) -> float:
    """How often the 95 % interval holds the true ratio 1.3, under log-normal noise of 3 %."""
    rng = np.random.default_rng(7 * n + outliers)
    hits = 0
    for _ in range(trials):
        drift = rng.normal(0, 0.2, n) if paired else np.zeros(n)  # common to both sides of a round
        apart = (0.0, 0.0) if paired else tuple(rng.normal(0, 0.02, 2))
        baseline = np.exp(rng.normal(0, 0.03, n) + drift + apart[0])
        candidate = 1.3 * np.exp(rng.normal(0, 0.03, n) + drift + apart[1])
        candidate[:outliers] *= 3.0
        ratio = ratio_interval(list(baseline), list(candidate), paired=paired)
        assert ratio is not None
        hits += ratio.low <= 1.3 <= ratio.high
    return hits / trials


@pytest.mark.parametrize("n", [3, 5, 6, 7, 8, 9])
def test_the_interval_covers_as_often_as_it_says(n: int) -> None:
    assert 0.935 <= covered(n, outliers=0, paired=True) <= 0.975


@pytest.mark.parametrize("n", [5, 7, 9])
def test_coverage_stands_one_bad_round(n: int) -> None:
    assert 0.93 <= covered(n, outliers=1, paired=True) <= 0.985


@pytest.mark.parametrize("n", [5, 9])
def test_recordings_made_apart_are_covered_too(n: int) -> None:
    assert 0.935 <= covered(n, outliers=0, paired=False) <= 0.99


def test_p_above_rejects_no_more_often_than_it_says() -> None:
    rng = np.random.default_rng(11)
    rejected = [p_above(list(1.1 * np.exp(rng.normal(0, 0.03, 7))), 0.1) < 0.05 for _ in range(1500)]

    assert 0.03 <= float(np.mean(rejected)) <= 0.07


def test_p_above_sees_a_clear_excess_and_no_excess() -> None:
    ratios = [1.50, 1.52, 1.49, 1.51, 1.48]

    assert p_above(ratios, 0.1) < 0.01
    assert p_above(ratios, 0.6) > 0.9


def test_interval_and_p_value_agree() -> None:
    ratios = [1.20, 1.25, 1.15, 1.22, 1.18, 1.21]
    ratio = ratio_interval([1.0] * 6, ratios, paired=True, confidence=0.9)

    assert ratio is not None
    assert p_above(ratios, ratio.low - 1) == pytest.approx(0.05)


# --- Holm ---------------------------------------------------------------------------------------------------


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))


@given(p_values)
def test_holm_keeps_the_order_and_never_lowers_a_p_value(values: list[float]) -> None:
    adjusted = holm(values)

    assert all(p <= a <= 1 for p, a in zip(values, adjusted, strict=True))
    ranked = sorted(zip(values, adjusted, strict=True))
    assert all(one[1] <= other[1] for one, other in itertools.pairwise(ranked))


@given(p_values)
def test_holm_is_never_stricter_than_bonferroni(values: list[float]) -> None:
    assert all(a <= min(1.0, len(values) * p) for p, a in zip(values, holm(values), strict=True))
