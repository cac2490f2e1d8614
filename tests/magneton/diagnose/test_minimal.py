"""What a search among changes promises, whatever the changes do."""

from collections.abc import Callable, Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magneton.diagnose.minimal import Answer, Chosen, fewest


def closed_by(*sufficient: Collection[int]) -> Callable[[Chosen], Answer]:
    """The gap closes once all changes of one of ``sufficient`` are made, whatever else is changed."""
    return lambda chosen: "closes" if any(set(chosen) >= set(each) for each in sufficient) else "stays"


def test_the_first_change_that_suffices_is_taken_and_what_was_tried_before_it_is_told() -> None:
    found = fewest(4, closed_by({2}, {3}))

    assert found.chosen == (2,)
    assert found.tried == (((0,), "stays"), ((1,), "stays"), ((2,), "closes"))
    assert not found.cut_short


def test_two_settings_that_only_act_together_are_found_together() -> None:
    assert fewest(6, closed_by({1, 4})).chosen == (1, 4)


def test_nothing_is_chosen_where_nothing_closes_the_gap() -> None:
    found = fewest(3, closed_by())
    assert found.chosen == () and ((0, 1, 2), "stays") in found.tried


@pytest.mark.parametrize("count", [0, 1])
def test_few_changes_need_few_trials(count: int) -> None:
    assert len(fewest(count, closed_by()).tried) == count


def test_a_trial_that_cannot_tell_confirms_nothing() -> None:
    assert fewest(3, lambda chosen: "cannot tell").chosen == ()


def test_a_search_that_is_cut_short_says_so_and_keeps_what_closes_the_gap() -> None:
    assert fewest(9, closed_by({8}), most=5).cut_short
    found = fewest(8, closed_by({1, 4}), most=10)
    assert found.cut_short and set(found.chosen) >= {1, 4}


@given(st.data())
def test_what_is_chosen_closes_the_gap_and_nothing_of_it_can_be_left_out(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 9))
    groups = st.sets(st.integers(0, count - 1), min_size=1)
    ask = closed_by(*data.draw(st.lists(groups, max_size=3)))
    unsure = data.draw(st.sets(st.integers(0, count - 1)))

    def may_not_tell(chosen: Chosen) -> Answer:
        return "cannot tell" if len(chosen) == 1 and chosen[0] in unsure else ask(chosen)

    found = fewest(count, may_not_tell, most=1000)
    everything = tuple(range(count))
    assert bool(found.chosen) == any(answer == "closes" for _, answer in found.tried)
    assert bool(found.chosen) == ("closes" in (may_not_tell(everything), *map(may_not_tell, zip(everything))))
    if found.chosen:
        assert may_not_tell(found.chosen) == "closes"
        for place in found.chosen:
            rest = tuple(other for other in found.chosen if other != place)
            assert not rest or may_not_tell(rest) != "closes"
    assert len({chosen for chosen, _ in found.tried}) == len(found.tried)
