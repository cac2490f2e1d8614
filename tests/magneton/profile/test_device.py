"""A device's coefficients agree with each other, and two devices are alike where their figures are."""

from dataclasses import replace
from typing import Any

import pytest
from profiles import a_coefficient

from magneton.meters.devices import read_model
from magneton.profile.device import MOST, Coefficient

H200 = read_model("h200")


@pytest.mark.parametrize(
    "bounds", [(0.0, 1.0, 2.0), (2.0, 1.0, 3.0), (1.0, 2.0, 1.5), (-1.0, 1.0, 2.0), (1.0, 1.0, float("inf"))]
)
def test_a_coefficient_lies_in_its_range(bounds: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="low <= value <= high"):
        a_coefficient(*bounds)


def test_a_coefficient_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="low <= value <= high"):
        Coefficient(value=float("nan"), low=1.0, high=2.0, source="a test")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"units": (*H200.units, H200.units[0])}, "'vector float32' is given twice"),
        ({"units": H200.units[1:]}, "needs the unit 'vector float32'"),
        ({"constant_power_w": H200.tdp_w}, "nothing is left to compute with"),
        ({"cache_j_per_byte": H200.memory_j_per_byte.times(2)}, "the longer one"),
        ({"memory_bytes_per_s": a_coefficient(1.0, 1.0, 2 * MOST)}, "memory_bytes_per_s lies beyond"),
    ],
)
def test_what_does_not_hold_together_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(H200, **changes)


def test_the_digest_is_of_the_figures_alone() -> None:
    renamed = replace(
        H200,
        name="another name",
        tdp_w=replace(H200.tdp_w, source="another source"),
        units=tuple(reversed(H200.units)),
    )

    assert renamed.digest() == H200.digest()
    assert replace(H200, tdp_w=H200.tdp_w.times(1.001)).digest() != H200.digest()
    assert replace(H200, units=H200.units[:-1]).digest() != H200.digest()
