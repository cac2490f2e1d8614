"""Numbers that are the same but for rounding, and numbers that only look so."""

from fractions import Fraction

import numpy as np
import pytest

from scalify.localize.values.alike import offset, ratio, same, tolerance

GIVEN = np.array([[1.5, -2.0], [0.25, 4.0]])


def test_rounding_is_no_difference_and_a_millionth_is_one() -> None:
    slack = tolerance(GIVEN)
    assert same([GIVEN * (1 + 1e-13)], [GIVEN], slack)
    assert not same([GIVEN * (1 + 1e-6)], [GIVEN], slack)


def test_a_masks_huge_numbers_do_not_hide_the_others() -> None:
    masked = np.array([-3.4e38, 0.5, 0.25, -3.4e38, 0.125])
    assert not same([masked + np.array([0, 1e-3, 0, 0, 0])], [masked], tolerance(masked))


def test_what_has_no_value_on_both_sides_is_the_same() -> None:
    one = np.array([np.nan, np.inf, 1.0])
    assert same([one], [one.copy()], 0.0)
    assert not same([np.array([np.nan, -np.inf, 1.0])], [one], 0.0)


def test_whole_numbers_are_compared_exactly() -> None:
    one = np.array([2**53, 1])
    assert tolerance(one) == 0.0
    assert not same([one + 1], [one], 0.0)


@pytest.mark.parametrize("factor", [Fraction(2), Fraction(1, 4), Fraction(-3, 2)])
def test_a_factor_that_is_a_fraction_is_found_as_one(factor: Fraction) -> None:
    assert ratio([GIVEN * float(factor)], [GIVEN], tolerance(GIVEN)) == factor


def test_another_factor_is_a_number_and_none_is_none() -> None:
    found = ratio([GIVEN * 2**0.5], [GIVEN], tolerance(GIVEN))
    assert isinstance(found, float)
    assert found == pytest.approx(2**0.5)
    assert ratio([GIVEN**2], [GIVEN], tolerance(GIVEN)) is None
    assert ratio([GIVEN], [GIVEN], tolerance(GIVEN)) is None


def test_of_single_numbers_only_a_count_is_a_factor() -> None:
    one = np.array(3.0)
    assert ratio([np.array(12.0)], [one], 1e-9) == 4
    assert ratio([np.array(8.0)], [one], 1e-9) is None


def test_a_number_that_was_added_is_found() -> None:
    assert offset([GIVEN + 1.0], [GIVEN], tolerance(GIVEN)) == 1.0
    assert offset([GIVEN * 2], [GIVEN], tolerance(GIVEN)) is None
