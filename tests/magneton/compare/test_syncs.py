"""Synchronisations with the host are told by number and line, though they cost next to nothing here."""

from dataclasses import replace

import pytest
from comparisons import a_side

from magneton.compare.syncs import sync_notes
from magneton.profile.model import Effect, Profile


def side(*effects: Effect) -> Profile:
    profile = a_side()
    changed = [replace(op, effect=e) for op, e in zip(profile.operators, effects, strict=False)]
    return replace(profile, operators=(*changed, *profile.operators[len(changed) :]))


def test_the_side_that_waits_more_often_is_named_with_its_lines() -> None:
    (note,) = sync_notes(side("sync", "sync", "compute"), side("compute", "sync", "compute"))

    assert "the baseline brings data to the host 2 times a step, the other side 1 times" in note
    assert "model.py:" in note


@pytest.mark.parametrize("effects", [("compute", "compute"), ("sync", "compute")])
def test_equal_numbers_are_not_mentioned(effects: tuple[Effect, ...]) -> None:
    assert sync_notes(side(*effects), side(*effects)) == ()
