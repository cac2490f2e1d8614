"""Coefficients that were planted are found, and ranges cover them as often as they promise."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted_device import ENERGIES, FACTS, repetition_s

from magneton.calibrate.fit import Fit, Fitted, NotIdentifiable, Observation, fit
from magneton.calibrate.plan import benchmarks_for
from magneton.calibrate.workbench import CACHE, CONSTANT, LAUNCH, MEMORY, ZEROS, energy_term

WINDOW_S = 2.0
FLOAT16 = energy_term("matrix", "float16")
BENCHMARKS = benchmarks_for(FACTS)

physical = st.fixed_dictionaries(
    {
        CONSTANT: st.floats(10.0, 150.0),
        LAUNCH: st.floats(1e-6, 1e-4),
        MEMORY: st.floats(80e-12, 250e-12),
        CACHE: st.floats(20e-12, 80e-12),
        MEMORY + ZEROS: st.floats(40e-12, 150e-12),
        CACHE + ZEROS: st.floats(10e-12, 50e-12),
        energy_term("vector", "float32"): st.floats(2e-12, 40e-12),
        energy_term("matrix", "tf32"): st.floats(0.5e-12, 3e-12),
        energy_term("matrix", "bfloat16"): st.floats(0.2e-12, 2e-12),
        FLOAT16: st.floats(0.2e-12, 2e-12),
        FLOAT16 + ZEROS: st.floats(0.1e-12, 1e-12),
    }
)


def windows(
    energies: Mapping[str, float],
    *,
    noise: float = 0.0,
    missed: float = 0.0,
    rounds: int = 3,
    seed: int = 0,
    without: Sequence[str] = (),
) -> list[Observation]:
    """What a meter reads: off by ``noise`` a window, and by ``missed`` a benchmark that the model misses."""
    dice = random.Random(seed)
    found: list[Observation] = []
    for benchmark in BENCHMARKS:
        repetitions = WINDOW_S / repetition_s(benchmark)
        amounts = {term: count * repetitions for term, count in benchmark.amounts.items()}
        energy_j = energies[CONSTANT] * WINDOW_S
        energy_j += sum(energies[term] * count for term, count in amounts.items())
        common = 1 + dice.gauss(0, missed)
        for _ in range(rounds):
            read_j = energy_j * (common + dice.gauss(0, noise))
            observation = Observation(
                benchmark=benchmark.name, duration_s=WINDOW_S, energy_j=read_j, amounts=amounts
            )
            if benchmark.name not in without:
                found.append(observation)
    return found


def covers(fitted: Fitted, truth: float) -> bool:
    return fitted.low <= truth <= fitted.high


@given(energies=physical, seed=st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_without_noise_what_was_planted_is_found_exactly(energies: dict[str, float], seed: int) -> None:
    found = fit(windows(energies), seed=seed, draws=20)

    for term, truth in energies.items():
        assert found.terms[term].value == pytest.approx(truth, rel=1e-6)
        assert found.terms[term].determined
    assert max(abs(error) for error in found.errors) < 1e-9


@given(energies=physical, seed=st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_with_noise_what_was_planted_is_near(energies: dict[str, float], seed: int) -> None:
    """Five half widths: one in thousands lies beyond, and thousands are looked at."""
    found = fit(windows(energies, noise=0.01, seed=seed), seed=seed, draws=100)

    for term, truth in energies.items():
        fitted = found.terms[term]
        reach = max(fitted.high - fitted.low, 1e-3 * truth)
        assert abs(fitted.value - truth) <= 2.5 * reach + 1e-30, term


@pytest.mark.parametrize(
    ("noise", "missed", "rounds"), [(0.01, 0.0, 3), (0.01, 0.0, 8), (0.003, 0.02, 3), (0.001, 0.0, 3)]
)
def test_ranges_cover_what_was_planted(noise: float, missed: float, rounds: int) -> None:
    """Of 95 % ranges at least 90 % must, over all terms and for each of those that go into a file."""
    runs = 60
    hits = dict.fromkeys(ENERGIES, 0)
    for seed in range(runs):
        readings = windows(ENERGIES, noise=noise, missed=missed, rounds=rounds, seed=seed)
        found = fit(readings, seed=seed, draws=200)
        for term, truth in ENERGIES.items():
            hits[term] += covers(found.terms[term], truth)

    assert sum(hits.values()) >= 0.9 * runs * len(hits)
    for term, count in hits.items():
        assert count >= 0.85 * runs, term


def test_ranges_are_as_narrow_as_the_noise_allows() -> None:
    found = fit(windows(ENERGIES, noise=0.01, rounds=8), seed=0)

    for term in (CONSTANT, MEMORY, CACHE, FLOAT16):
        fitted = found.terms[term]
        assert (fitted.high - fitted.low) / 2 / fitted.value < 0.05, term


@given(seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=20)
def test_the_order_of_windows_says_nothing(seed: int) -> None:
    readings = windows(ENERGIES, noise=0.01)
    shuffled = random.Random(seed).sample(readings, len(readings))

    assert_same(fit(shuffled, seed=1, draws=30), fit(readings, seed=1, draws=30), {})


@given(factor=st.floats(1e-6, 1e6), term=st.sampled_from(sorted(ENERGIES.keys() - {CONSTANT})))
@settings(deadline=None, max_examples=30)
def test_the_unit_of_an_amount_says_nothing(factor: float, term: str) -> None:
    readings = windows(ENERGIES, noise=0.01)
    other = [
        replace(each, amounts={t: c * (factor if t == term else 1) for t, c in each.amounts.items()})
        for each in readings
    ]

    assert_same(fit(other, seed=1, draws=30), fit(readings, seed=1, draws=30), {term: 1 / factor})


@given(factor=st.floats(1e-3, 1e3))
@settings(deadline=None, max_examples=20)
def test_the_unit_of_energy_says_nothing(factor: float) -> None:
    readings = windows(ENERGIES, noise=0.01)
    other = [replace(each, energy_j=each.energy_j * factor) for each in readings]

    assert_same(
        fit(other, seed=1, draws=30), fit(readings, seed=1, draws=30), dict.fromkeys(ENERGIES, factor)
    )


def assert_same(one: Fit, other: Fit, factors: Mapping[str, float]) -> None:
    for term, fitted in other.terms.items():
        factor = factors.get(term, 1.0)
        ours = one.terms[term]
        for mine, theirs in ((ours.value, fitted.value), (ours.low, fitted.low), (ours.high, fitted.high)):
            assert mine == pytest.approx(theirs * factor, rel=1e-5)


def test_the_gain_of_the_meter_widens_every_range() -> None:
    readings = windows(ENERGIES, noise=0.001)

    plain, wide = fit(readings, seed=0), fit(readings, seed=0, scale=(0.95, 1.1))

    for term, fitted in plain.terms.items():
        assert wide.terms[term].low == pytest.approx(0.95 * fitted.low)
        assert wide.terms[term].high == pytest.approx(1.1 * fitted.high)
        assert wide.terms[term].value == pytest.approx(fitted.value)


def test_an_error_of_the_meters_windows_widens_ranges_though_readings_agree() -> None:
    found = fit(windows(ENERGIES), seed=0, window_error=0.02)

    constant = found.terms[CONSTANT]
    assert (constant.high - constant.low) / 2 / constant.value > 0.01


def test_a_term_that_another_can_stand_in_for_is_not_determined() -> None:
    """Two ways to pay for the same bytes, always in the same proportion."""
    readings = [
        replace(each, amounts=dict(each.amounts) | {"twin": 2.0 * each.amounts[CACHE]})
        if CACHE in each.amounts
        else each
        for each in windows(ENERGIES)
    ]

    found = fit(readings, seed=0, draws=20).terms

    assert not found[CACHE].determined and "twin" in found[CACHE].doubt
    assert not found["twin"].determined and CACHE in found["twin"].doubt
    assert found[MEMORY].determined
    assert found[MEMORY].value == pytest.approx(ENERGIES[MEMORY], rel=1e-6)


def test_a_term_that_costs_nothing_is_lost_in_the_noise() -> None:
    found = fit(windows(dict(ENERGIES) | {LAUNCH: 0.0}, noise=0.01), seed=0)

    assert not found.terms[LAUNCH].determined
    assert "noise" in found.terms[LAUNCH].doubt or "factor" in found.terms[LAUNCH].doubt
    assert found.terms[LAUNCH].low >= 0


def test_a_term_that_was_hardly_read_is_not_determined() -> None:
    readings = windows(ENERGIES, rounds=2)

    found = fit(readings, seed=0, draws=20)

    assert found.terms[FLOAT16 + ZEROS].doubt == "only 2 windows of it were read"
    assert found.terms[FLOAT16].determined


def test_without_any_reading_nothing_can_be_fitted() -> None:
    with pytest.raises(NotIdentifiable, match="no window") as raised:
        fit([], seed=0)
    assert "doctor" in raised.value.hint


def test_too_few_benchmarks_are_refused() -> None:
    names = [benchmark.name for benchmark in BENCHMARKS]
    kept = {"rest", names[2], names[4]}

    with pytest.raises(NotIdentifiable, match="only 3 benchmarks"):
        fit(windows(ENERGIES, without=[name for name in names if name not in kept]), seed=0)


def test_a_device_whose_power_is_never_constant_is_refused() -> None:
    """Every window takes the same power per launch: what is constant cannot be told from that."""
    readings = [
        Observation(
            benchmark=f"benchmark {k}",
            duration_s=1.0,
            energy_j=100.0,
            amounts={"j_per_launch": 1e5},
        )
        for k in range(5)
        for _ in range(3)
    ]

    with pytest.raises(NotIdentifiable, match="constant power"):
        fit(readings, seed=0)
