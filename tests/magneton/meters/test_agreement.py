"""Two sensors that drift apart give a window away."""

import pytest

from magneton.meters.agreement import Agreement


@pytest.mark.parametrize(("probed", "found"), [(None, 1.1), (1.8, 1.7), (1.8, 1.0), (0.97, 1.2)])
def test_the_first_window_may_be_as_the_probe_or_as_one(probed: float | None, found: float) -> None:
    assert Agreement(probed).objection(found, even=True) == ""


@pytest.mark.parametrize("found", [0.4, 2.6])
def test_a_window_that_disagrees_with_both_is_refused(found: float) -> None:
    objection = Agreement(1.0).objection(found, even=True)

    assert f"{found:.2f}" in objection and "1.00" in objection


def test_later_windows_are_held_against_earlier_ones() -> None:
    agreement = Agreement(1.8)
    for _ in range(3):
        assert agreement.objection(1.0, even=True) == ""

    assert agreement.objection(1.8, even=True) != ""
    assert agreement.objection(1.05, even=True) == ""


def test_power_that_swings_is_given_more_room() -> None:
    assert Agreement(1.0).objection(1.6, even=False) == ""
    assert Agreement(1.0).objection(1.6, even=True) != ""
    assert Agreement(1.0).objection(2.3, even=False) != ""


def test_rest_before_the_work_says_nothing_of_how_the_sensors_agree_at_work() -> None:
    agreement = Agreement(0.55)

    assert agreement.objection(0.55, even=False) == ""  # at rest, before the first block
    assert agreement.objection(1.0, even=True) == ""
    assert agreement.objection(0.55, even=True) != ""
    assert agreement.objection(0.55, even=False) == ""  # at rest, after the last


def test_what_is_not_known_is_no_objection() -> None:
    assert Agreement(1.0).objection(None, even=True) == ""
