import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magneton.quantity import Provenance, Quantity
from magneton.report.quantities import figure, percent, quantity, ratio


def q(value: float, low: float, high: float) -> Quantity:
    return Quantity(value=value, low=low, high=high, n=7, provenance=Provenance.MODELLED)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "J", "-"),
        (0.0, "J", "0 J"),
        (1.234, "J", "1.23 J"),
        (0.0012345, "J", "1.23 mJ"),
        (0.9996, "J", "1.00 J"),
        (-2.5e-6, "J", "-2.50 µJ"),
        (12345.0, "J", "12.3 kJ"),
        (5e-10, "s", "0.500 ns"),
        (125.0, "s", "125 s"),
        (12345.0, "s", "12345 s"),
        (3.2e9, "FLOP", "3.20 GFLOP"),
        (512.0, "B", "512 B"),
        (2048.0, "B", "2.05 kB"),
        (17.0, "operators", "17 ops"),
    ],
)
def test_three_digits_and_a_unit_that_fits(value: float | None, unit: str, text: str) -> None:
    assert figure(value, unit) == text


def test_the_interval_has_the_digits_of_the_value() -> None:
    assert quantity(q(1.2345e-3, 1.19e-3, 1.28e-3), "J") == "1.23 ± 0.05 mJ"
    assert quantity(q(15.0, 14.0, 17.0), "J") == "15.0 ± 2.0 J"


def test_a_point_has_no_interval_and_one_reading_says_so() -> None:
    assert quantity(q(3.0, 3.0, 3.0), "J") == "3.00 J"
    assert quantity(q(3.0, -math.inf, math.inf), "J") == "3.00 J (one reading)"
    assert quantity(None, "J") == "-"


def test_a_spread_larger_than_the_value_sets_the_unit() -> None:
    assert quantity(q(1e-6, -1e-3, 1e-3), "J") == "0.00 [-1, 1] mJ"


def test_a_wide_interval_shows_its_ends() -> None:
    assert quantity(q(10.0, 5.04, 23.7), "J") == "10.0 [5, 24] J"
    assert quantity(q(113.0, 52.0, 237.0), "J") == "113 [52, 240] J"


def test_ratios_show_both_ends() -> None:
    assert ratio(q(1.823, 1.75, 1.904)) == "1.82x [1.75, 1.90]"
    assert ratio(q(1.5, 1.5, 1.5)) == "1.5x"
    assert ratio(q(1.5, -math.inf, math.inf)) == "1.50x [one reading]"
    assert ratio(None) == "-"


def test_shares_are_percents() -> None:
    assert percent(0.1234) == "12.3 %"
    assert percent(1.0) == "100 %"
    assert percent(0.0012) == "0.12 %"
    assert percent(None) == "-"


@given(st.floats(allow_nan=False), st.sampled_from(["J", "s", "FLOP", "B", "operators"]))
def test_any_figure_can_be_told(value: float, unit: str) -> None:
    assert figure(value, unit)
