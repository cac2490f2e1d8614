"""Pairs that are none, and what the devices' sensors say against the figures."""

from dataclasses import replace

import numpy as np
import pytest
from comparisons import ROUNDS, a_side, matched

from magneton.compare.conditions import condition_notes, pairs_apart, side_notes
from magneton.compare.model import Criteria
from magneton.compare.profiles import compare
from magneton.profile.model import Conditions, Moment, Profile
from magneton.workload import PREFILL


def seen(round: int, moment: Moment = "before", **known: object) -> Conditions:
    fields: dict[str, object] = {"temperature_c": None, "clock_hz": None, "throttle": "", "foreign": 0}
    return Conditions(
        phase=PREFILL,
        round=round,
        moment=moment,
        time_s=0.0,
        **(fields | known),  # pyright: ignore[reportArgumentType]
    )


def warm(*starts_c: float) -> Profile:
    return replace(a_side(), conditions=tuple(seen(r, temperature_c=c) for r, c in enumerate(starts_c)))


def test_a_pair_whose_sides_began_far_apart_is_left_out_of_the_ratio() -> None:
    baseline, candidate = warm(*[40.0] * ROUNDS), warm(*[41.0] * (ROUNDS - 1), 44.0)
    last = replace(candidate.blocks[-1], energy_j=10 * (candidate.blocks[-1].energy_j or 0.0))
    candidate = replace(candidate, blocks=(*candidate.blocks[:-1], last))

    comparison = compare(baseline, candidate, matched(baseline, candidate), Criteria())
    ratio = comparison.totals[0].cost_ratio

    assert pairs_apart(baseline, candidate, PREFILL).rounds == {ROUNDS - 1}
    assert ratio is not None
    assert ratio.n == ROUNDS - 1
    assert ratio.value == pytest.approx(1.0)
    assert any("1 of 7 pairs of prefill are left out" in note for note in comparison.notes)


def test_where_one_side_is_always_warmer_the_pairs_stay_and_a_note_says_so() -> None:
    baseline, candidate = warm(*[40.0] * ROUNDS), warm(*[50.0] * ROUNDS)

    assert pairs_apart(baseline, candidate, PREFILL).rounds == frozenset()
    (note,) = condition_notes(baseline, candidate, paired=True)
    assert "10 °C warmer on the candidate's side" in note


def test_pairs_that_were_not_read_are_none_that_could_be_left_over() -> None:
    baseline, candidate = warm(*[40.0] * ROUNDS), warm(*[50.0] * 3, *[40.0] * (ROUNDS - 3))
    unread = tuple(b if b.round < 3 else replace(b, energy_j=None, gap="stuck") for b in baseline.blocks)
    baseline = replace(baseline, blocks=unread)

    comparison = compare(baseline, candidate, matched(baseline, candidate), Criteria())
    ratio = comparison.totals[0].cost_ratio

    assert ratio is not None and ratio.n == 3


def test_recordings_made_apart_have_no_pairs_to_leave_out() -> None:
    assert condition_notes(warm(40.0), warm(80.0), paired=False) == ()


def test_clocks_that_differ_are_named() -> None:
    one, other = (replace(a_side(), conditions=(seen(0, "after", clock_hz=hz),)) for hz in (1.41e9, 1.2e9))

    assert condition_notes(one, other, paired=True) == ("the clocks differ in prefill: 1410 and 1200 MHz",)
    assert condition_notes(one, one, paired=True) == ()


def test_reasons_for_low_clocks_are_counted_each() -> None:
    rows = (seen(0, "after", throttle="sw-power-cap, sync-boost"), seen(1, "after", throttle="sw-power-cap"))

    assert side_notes(replace(a_side(), conditions=rows)) == (
        "clocks were held down (sw-power-cap) at the end of 2 of 2 blocks",
        "clocks were held down (sync-boost) at the end of 1 of 2 blocks",
    )


@pytest.mark.parametrize(("ratios", "noted"), [((1.02, 0.99, 1.3), False), ((1.7, 1.8, 1.7), True)])
def test_sensors_that_disagree_are_noted(ratios: tuple[float, ...], noted: bool) -> None:
    side = a_side()
    blocks = tuple(replace(b, agreement=r) for b, r in zip(side.blocks, ratios, strict=False))

    assert bool(side_notes(replace(side, blocks=blocks))) is noted


def test_operators_that_keep_the_device_waiting_are_counted() -> None:
    side = a_side()
    shares = np.resize([0.1, 0.9, 1.0], len(side.replays))
    replays = tuple(replace(r, busy_share=shares[r.key_id]) for r in side.replays)

    (note,) = side_notes(replace(side, replays=replays))

    assert note.startswith("1 of 3 kinds of operators")


def test_any_number_of_reasons_is_told_in_a_few_lines_and_soon() -> None:
    """A hundred thousand different reasons, as only a forged file has them."""
    rows = tuple(seen(r, "after", throttle=f"reason {r}") for r in range(100_000))

    notes = side_notes(replace(a_side(), conditions=rows))

    assert len(notes) == 6
    assert notes[-1] == "clocks were held down for 99995 more reasons"


def test_a_board_that_others_used_is_noted() -> None:
    rows = (seen(0), seen(0, "after", foreign=2), seen(1), seen(1, "after"))

    assert side_notes(replace(a_side(), conditions=rows)) == (
        "processes of others were at work on the device around 1 of 2 blocks",
    )
