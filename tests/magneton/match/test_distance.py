# pyright: reportUnknownLambdaType=false
# Small functions of arrays: their types are NumPy's business.

import numpy as np
import pytest

from magneton.match.distance import anchors, threshold
from magneton.profile.distance import distance
from magneton.profile.sketches import stack_sketches
from magneton.record.sketching import sketch_array


def apart(one: object, other: object) -> float:
    sketches = stack_sketches([sketch_array(np.asarray(one)), sketch_array(np.asarray(other))])
    return distance(sketches, 0, sketches, 1)


def limit(count: int) -> float:
    return float(threshold(np.array([count]))[0])


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((40, 50))


def test_layout_does_not_matter(x: np.ndarray):
    assert apart(x, x.T.reshape(-1)) < 1e-12


@pytest.mark.parametrize(
    "change",
    [lambda x: -x, lambda x: 1.01 * x, lambda x: x + 0.02],
    ids=["negated", "scaled", "shifted"],
)
def test_what_is_almost_the_same_is_not(x: np.ndarray, change: object):
    assert apart(x, change(x)) > limit(x.size)  # type: ignore[operator]  # a parametrised lambda


@pytest.mark.parametrize("count", [100, 10_000, 1_000_000])
def test_independent_tensors_of_one_distribution_differ(count: int):
    draws = np.random.default_rng(1)
    assert apart(draws.standard_normal(count), draws.standard_normal(count)) > limit(count)


def test_half_precision_is_noise(x: np.ndarray):
    assert apart(x, x.astype(np.float16)) < limit(x.size)


def test_rms_on_either_side_of_an_octave_still_compares():
    x = np.random.default_rng(2).standard_normal(1000)
    x *= 2**-0.5 / np.sqrt(np.square(x).mean())
    low, high = sketch_array(x * (1 - 1e-7)), sketch_array(x * (1 + 1e-7))
    assert low is not None
    assert high is not None
    assert low.first != high.first
    sketches = stack_sketches([low, high])
    assert distance(sketches, 0, sketches, 1) < 1e-6


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -np.finfo(np.float32).max])
def test_counts_of_what_is_no_number_must_agree(x: np.ndarray, bad: float):
    masked = x.copy()
    masked[0, :3] = bad
    assert apart(x, masked) == np.inf
    assert apart(masked, masked.T) < 1e-12


def test_unknown_values_are_infinitely_far():
    sketches = stack_sketches([None, sketch_array(np.arange(30.0))])
    assert distance(sketches, 0, sketches, 1) == np.inf


def test_masks_and_scalars_are_no_anchors():
    arrays = np.tri(64), np.float64(3.0), np.arange(64.0), np.arange(64) % 4
    sketches = stack_sketches([sketch_array(np.asarray(array)) for array in arrays])
    assert anchors(sketches).tolist() == [False, False, True, False]
