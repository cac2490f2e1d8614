"""What a place costs less, whether a region holds it or nothing on the other side matches it."""

from collections.abc import Sequence

import pytest
from comparisons import ATTENTION, MLP, a_side, matched

from magneton.compare.ledger import Ledger
from magneton.diagnose.saving import Saving, judge, saving
from magneton.profile.model import OpId, Profile
from magneton.quantity import Provenance, Quantity

COSTS_J = (1.0, 2.0, 3.0)
LAYERS = 4


def side(costs_j: Sequence[float] = COSTS_J) -> Profile:
    return a_side(costs_j, noise=0.0, session="one")


def operators(profile: Profile, name: str) -> tuple[OpId, ...]:
    return tuple(operator.op_id for operator in profile.operators if operator.name == name)


def spared(before: Profile, after: Profile, of: Sequence[OpId], *, unmatched: Sequence[str] = ()) -> Saving:
    return saving(Ledger(before), Ledger(after), matched(before, after, left=unmatched), of)


def test_of_a_region_all_that_does_its_work_counts() -> None:
    before, after = side(), side((1.0, 0.5, 3.0))
    found = spared(before, after, operators(before, "aten._softmax.default"))

    assert found.saved is not None
    assert found.saved.value == pytest.approx(LAYERS * 1.5)


def test_what_is_gone_is_saved_and_what_came_instead_is_not() -> None:
    before = side()
    dearer = side((1.0, 1.5, 3.0))
    without = a_side((1.0, 3.0), layer=(ATTENTION[0], *MLP), noise=0.0, session="one")
    left = operators(before, "aten._softmax.default")

    gone = spared(before, without, left, unmatched=["aten._softmax.default"])
    instead = spared(before, dearer, left, unmatched=["aten._softmax.default"])
    assert gone.saved is not None and gone.saved.value == pytest.approx(LAYERS * 2.0)
    assert instead.saved is not None and instead.saved.value == pytest.approx(LAYERS * 0.5)


def test_recordings_apart_say_nothing() -> None:
    before, after = side(), a_side(COSTS_J, session="another")
    found = spared(before, after, operators(before, "aten.mm.default"))
    assert found.saved is None and "memory" in found.problem


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict"),
    [
        (1.0, 0.9, 1.1, "confirmed"),
        (0.85, 0.6, 1.1, "confirmed"),
        (0.85, 0.4, 1.3, "untestable here"),
        (0.7, 0.6, 0.9, "untestable here"),
        (0.7, 0.6, 0.79, "refuted"),
        (0.0, -0.1, 0.1, "refuted"),
        (-1.0, -2.0, 0.0, "refuted"),
    ],
)
def test_a_gap_is_closed_when_nearly_all_of_it_is_gone(
    value: float, low: float, high: float, verdict: str
) -> None:
    saved = Quantity(value=value, low=low, high=high, n=7, provenance=Provenance.MEASURED)
    assert judge(Saving(saved=saved), excess=1.0)[0] == verdict


def test_without_a_reading_nothing_is_judged() -> None:
    assert judge(Saving(saved=None, problem="no reading"), excess=1.0) == ("untestable here", "no reading")
