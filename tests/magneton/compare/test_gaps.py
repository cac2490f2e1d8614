"""What was not read is told with its reason."""

from dataclasses import replace

from comparisons import a_side
from modelled_work import copy, profile_of

from magneton.compare.gaps import gap_notes
from magneton.meters.devices import read_model
from magneton.profile.model import ReplayKey


def test_all_read_is_nothing_to_tell() -> None:
    assert gap_notes(a_side()) == ()
    assert gap_notes(profile_of([copy(8)], read_model("h200"))) == ()


def test_blocks_without_energy_are_counted_with_their_reasons() -> None:
    side = a_side()
    why = ("the counter stood still", "the counter stood still", "")
    gone = [replace(b, energy_j=None, gap=gap) for b, gap in zip(side.blocks, why, strict=False)]

    (note,) = gap_notes(replace(side, blocks=(*gone, *side.blocks[3:])))

    assert note == (
        "3 of 7 blocks of prefill have no energy: the counter stood still (2); no reason is recorded (1)"
    )


def test_operators_are_counted_by_why_they_were_not_replayed_or_not_read() -> None:
    side = a_side()
    keys = (replace(side.keys[0], skipped="no time was left"), *side.keys[1:])
    lost = tuple(
        replace(r, energy_j=None, gap="the board was lost") if r.key_id == 1 else r
        for r in side.replays
        if r.key_id != 0
    )

    (note,) = gap_notes(replace(side, keys=keys, replays=lost))

    assert note == "8 operators of prefill have no energy: no time was left (4); the board was lost (4)"


def test_many_and_long_reasons_stay_short() -> None:
    side = a_side(rounds=50)
    gone = tuple(replace(b, energy_j=None, gap=f"{b.round} " * 1000) for b in side.blocks)

    (note,) = gap_notes(replace(side, blocks=gone))

    assert note.endswith("47 more reasons")
    assert len(note) < 400


def test_a_round_that_was_read_is_enough_for_an_operator() -> None:
    side = a_side()
    once = tuple(replace(r, energy_j=None, gap="late") if r.round else r for r in side.replays)
    keys = tuple(ReplayKey(key_id=key.key_id, skipped=None) for key in side.keys)

    assert gap_notes(replace(side, keys=keys, replays=once)) == ()
