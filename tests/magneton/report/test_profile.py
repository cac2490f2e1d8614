import io

import pytest
from comparisons import a_side, with_readings_lost
from hypothesis import given, settings
from on_boards import at_rest, on_a_board
from profiles import profiles

from magneton.profile.model import Doubt, Profile
from magneton.report.console import console_for
from magneton.report.profile import print_profile
from magneton.report.summary import summarise_profile


def printed(profile: Profile, width: int = 80, top: int = 10) -> str:
    stream = io.StringIO()
    print_profile(summarise_profile(profile), console_for(stream, width), top=top)
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 160])
def test_a_profile_tells_its_origin_totals_and_operators(width: int) -> None:
    text = printed(a_side(system="torch", model="llama-tiny"), width)

    for needed in ("torch", "llama-tiny", "modelled, not measured", "2026-01-02", "prefill", "aten.mm"):
        assert needed in text
    assert "model.py:21" in text
    assert max(len(line) for line in text.splitlines()) <= width


def test_the_costliest_operator_comes_first() -> None:
    costs = [each.name for each in summarise_profile(a_side((1.0, 5.0, 2.0))).operators]

    assert costs == ["aten._softmax.default", "aten.mm.default", "aten.bmm.default"]


def test_where_nothing_was_read_the_longest_comes_first() -> None:
    profile = a_side((1.0, 5.0, 2.0))
    for key in range(3):
        profile = with_readings_lost(profile, key)
    summary = summarise_profile(profile)

    assert summary.operators[0].name == "aten._softmax.default"
    assert summary.operators[0].cost is None
    assert summary.phases[0].unread == 12


def test_top_bounds_the_list_and_says_so() -> None:
    assert "2 more kinds of operators" in printed(a_side(), top=1)


@settings(max_examples=25, deadline=None)
@given(profiles())
def test_any_profile_can_be_shown(profile: Profile) -> None:
    text = printed(profile)

    assert "\x1b" not in text
    assert "\u202e" not in text
    assert all(doubt_told(doubt, text) for doubt in profile.doubts)


def doubt_told(doubt: Doubt, text: str) -> bool:
    return "To keep in mind" in text


def test_net_energy_and_the_host_are_told_below_a_steps_figures() -> None:
    text = printed(at_rest(on_a_board(host_w=2.0), 2.0))

    assert "of it above the device at rest" in text
    assert "the host spends 3.00 ± 0.05 J meanwhile" in text
