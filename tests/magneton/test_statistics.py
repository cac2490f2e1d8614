"""Intervals cover what they promise, one bad round does no harm, and counts have no noise."""

import itertools
import math
import statistics as plain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magneton.quantity import Provenance, Quantity
from magneton.statistics import CONFIDENCE, Spread, estimate_ratio, holm, summarise

MEASURED, MODELLED, COUNTED = Provenance.MEASURED, Provenance.MODELLED, Provenance.COUNTED

positive = st.floats(1e-9, 1e9)
rounds = st.lists(positive, min_size=2, max_size=12)
pairs = st.lists(st.tuples(positive, positive), min_size=2, max_size=12)
alike = st.lists(st.floats(1.0, 1.1), min_size=7, max_size=7)
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


# --- an error that rounds share -----------------------------------------------------------------------------


def shared_error_covered(
    n: int, *, window_error: float, noise: float, trials: int = 1500
) -> tuple[float, float]:
    """How often the intervals hold the truth where the windows of a recording are all off by one factor."""
    rng = np.random.default_rng(n)
    figures = ratios = 0
    for _ in range(trials):
        off = rng.normal(0, window_error, 2)
        baseline = 10.0 * (1 + off[0]) * (1 + rng.normal(0, noise, n))
        candidate = 13.0 * (1 + off[1]) * (1 + rng.normal(0, noise, n))
        figure = summarise(list(baseline), MEASURED, window_error=window_error)
        estimate = estimate_ratio(list(baseline), list(candidate), paired=True, window_error=window_error)
        assert estimate is not None
        figures += figure.low <= 10.0 <= figure.high
        ratios += estimate.interval().low <= 1.3 <= estimate.interval().high
    return figures / trials, ratios / trials


@pytest.mark.parametrize("noise", [0.002, 0.01, 0.03])
@pytest.mark.parametrize("n", [3, 5, 9])
def test_intervals_cover_an_error_that_all_rounds_share(n: int, noise: float) -> None:
    figure, ratio = shared_error_covered(n, window_error=0.01, noise=noise)

    assert 0.935 <= figure <= 0.985
    assert 0.935 <= ratio <= 0.985


def test_more_rounds_do_not_average_a_shared_error_out() -> None:
    readings = [10.0, 10.001, 9.999] * 100

    plain_figure, shared = (summarise(readings, MEASURED, window_error=error) for error in (0.0, 0.01))
    ratio = estimate_ratio(readings, readings, paired=True, window_error=0.01)

    assert plain_figure.high - plain_figure.low < 0.001
    assert shared.high - shared.low == pytest.approx(2 * 1.96 * 0.1, rel=0.01)
    assert ratio is not None
    assert ratio.standard_error == pytest.approx(0.0, abs=1e-12)
    assert ratio.shared_error == pytest.approx(math.sqrt(2) * 0.01)
    assert ratio.interval().high == pytest.approx(math.exp(1.96 * math.sqrt(2) * 0.01), rel=1e-3)


@given(alike, alike, st.floats(1e-4, 0.1), st.floats(0.6, 0.999))
def test_interval_and_p_value_agree_whatever_is_shared(
    baseline: list[float], candidate: list[float], window_error: float, confidence: float
) -> None:
    estimate = estimate_ratio(baseline, candidate, paired=True, window_error=window_error)
    assert estimate is not None
    ratio = estimate.interval(confidence)

    assert estimate.p_above(ratio.low - 1) == pytest.approx((1 - confidence) / 2, rel=1e-3)
    assert estimate.p_below(1 / ratio.high - 1) == pytest.approx((1 - confidence) / 2, rel=1e-3)


def test_p_values_under_a_shared_error_fall_with_the_ratio() -> None:
    estimate = estimate_ratio(
        [1.0] * 7, [1.2, 1.21, 1.19, 1.2, 1.2, 1.22, 1.18], paired=True, window_error=0.01
    )

    assert estimate is not None
    p_values = [estimate.p_above(threshold) for threshold in (0.0, 0.1, 0.15, 0.19, 0.21, 0.25, 0.4)]
    assert p_values == sorted(p_values)
    assert p_values[1] < 1e-4
    assert p_values[-1] > 1 - 1e-4


def test_one_round_says_nothing_whatever_its_error() -> None:
    figure = summarise([3.0], MEASURED, window_error=0.01)
    estimate = estimate_ratio([1.0], [2.0], paired=True, window_error=0.01)

    assert (figure.low, figure.high) == (-math.inf, math.inf)
    assert estimate is not None
    assert estimate.p_above(0.1) == 1.0


@given(rounds, st.booleans())
def test_without_a_shared_error_nothing_changes(readings: list[float], paired: bool) -> None:
    others = readings[::-1]

    assert summarise(readings, MEASURED, window_error=0.0) == summarise(readings, MEASURED)
    assert estimate_ratio(readings, others, paired=paired, window_error=0.0) == estimate_ratio(
        readings, others, paired=paired
    )


# --- draws --------------------------------------------------------------------------------------------------


def test_the_interval_of_draws_holds_95_percent_of_them() -> None:
    draws = [*np.random.default_rng(3).lognormal(0, 0.3, 1000)]

    figure = summarise(draws, MODELLED, spread=Spread.DRAWS)

    assert float(np.mean([figure.low <= draw <= figure.high for draw in draws])) == pytest.approx(0.95)
    assert figure.value == pytest.approx(plain.fmean(draws))


@pytest.mark.parametrize("count", [200, 3200])
def test_more_draws_narrow_nothing(count: int) -> None:
    rng = np.random.default_rng(count)
    baseline = rng.lognormal(0, 0.5, count)
    ratios = rng.lognormal(0.3, 0.05, count)

    estimate = estimate_ratio(
        [*baseline], [*(baseline * ratios)], paired=True, provenance=MODELLED, spread=Spread.DRAWS
    )

    assert estimate is not None
    assert estimate.standard_error == pytest.approx(0.05, rel=0.15)
    assert math.isinf(estimate.degrees_of_freedom)


def test_p_above_is_the_part_of_the_draws_that_do_not_exceed_the_threshold() -> None:
    rng = np.random.default_rng(5)
    baseline, ratios = rng.lognormal(0, 0.5, 5000), rng.lognormal(0.2, 0.1, 5000)

    estimate = estimate_ratio([*baseline], [*(baseline * ratios)], paired=False, spread=Spread.DRAWS)

    assert estimate is not None
    for threshold in (0.05, 0.1, 0.2, 0.3):
        share = float(np.mean(ratios <= 1 + threshold))
        assert estimate.p_above(threshold) == pytest.approx(share, abs=0.02)


def test_what_all_draws_agree_on_is_certain() -> None:
    draws = [*np.random.default_rng(7).lognormal(0, 0.5, 50)]

    same = estimate_ratio(draws, draws, paired=False, spread=Spread.DRAWS)
    double = estimate_ratio(draws, [2 * draw for draw in draws], paired=False, spread=Spread.DRAWS)

    assert same is not None
    assert (same.interval().low, same.interval().value, same.interval().high) == (1.0, 1.0, 1.0)
    assert double is not None
    assert double.p_above(0.99) == pytest.approx(0.0)
    assert double.p_above(1.01) == pytest.approx(1.0)


def test_a_single_draw_is_a_calculation_without_doubt() -> None:
    figure = summarise([3.0], MODELLED, spread=Spread.DRAWS)
    estimate = estimate_ratio([1.0], [2.0], paired=True, spread=Spread.DRAWS)

    assert figure.low == figure.value == figure.high == 3.0
    assert estimate is not None
    assert estimate.standard_error == 0.0


def test_draws_pair_one_to_one() -> None:
    with pytest.raises(ValueError, match="2 draws of the baseline, 1 of the candidate"):
        estimate_ratio([1.0, 2.0], [1.0], paired=False, spread=Spread.DRAWS)


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
