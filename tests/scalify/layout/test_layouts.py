"""The layout algebra answers rightly or not at all: benchmarks/layout_fuzz.py in small, and single cases."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from layout_fuzz import OPERATIONS, Outcome
from random_layouts import Layouts, places, table

from scalify.layout.digits import ZERO, Expr, Term, aligned, digit, split, summed
from scalify.layout.maps import (
    IndexMap,
    along,
    identity,
    is_identity,
    reshaped,
    sliced,
    solve,
    then,
    transposed,
)
from scalify.layout.ranks import digits_of, joined, without
from scalify.layout.views import Partial, View, independent_of, narrowed, same, through, whole

LEAST_SHARE_ANSWERED = {"solve": 0.5, "independent": 0.05, "passes": 0.5}


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_no_answer_is_wrong(name: str) -> None:
    layouts, outcome = Layouts(Random(11)), Outcome()
    while outcome["cases"] < 800:
        for answered, right, exists in OPERATIONS[name](layouts):
            outcome.note(answered=answered, right=right, exists=exists)
    assert outcome["unsound"] == 0
    assert outcome["expressible"] >= LEAST_SHARE_ANSWERED.get(name, 0.6) * outcome["cases"]
    assert outcome["missed"] <= 0.1 * outcome["cases"]


def test_a_wrong_answer_is_counted() -> None:
    outcome = Outcome()
    outcome.note(answered=True, right=False)
    outcome.note(answered=False, exists=True)
    assert dict(outcome) == {"cases": 2, "expressible": 1, "unsound": 1, "missed": 1}


def test_tables_are_those_of_numpy() -> None:
    numbers = np.arange(24).reshape(2, 3, 4)
    flipped = then(transposed((2, 3, 4), (2, 0, 1)), identity((2, 3, 4)))
    assert flipped is not None
    np.testing.assert_array_equal(table(flipped), numbers.transpose(2, 0, 1))
    window = sliced((2, 3, 4), (ZERO, Expr(2, ()), Expr(1, ())), (2, 2, 2), (1, -1, 2))
    np.testing.assert_array_equal(table(window), numbers[:, 2:0:-1, 1::2])
    assert [place.shape for place in places(window)] == [(2, 2, 2)] * 3


def test_reshapes_split_and_join_digits() -> None:
    once, back = reshaped((4, 6), (2, 2, 3, 2)), reshaped((2, 2, 3, 2), (4, 6))
    assert once is not None and back is not None
    both = then(back, once)
    assert both is not None and is_identity(both)
    assert reshaped((4, 6), (3, 8)) is None, "no common radices: not expressible, and not guessed"


def test_a_digit_across_radices_is_not_expressible() -> None:
    three_by_two = summed(0, [Term(0, 1, 3, 2), Term(1, 1, 2, 1)])
    assert split(three_by_two, 3) is None
    assert digit(three_by_two, 2, 3) == Expr(0, (Term(0, 1, 3, 1),))


def test_overlapping_digits_are_cut_before_they_are_added() -> None:
    whole_less_lowest = aligned(0, [Term(0, 1, 8, 1), Term(0, 1, 2, -1)])
    assert whole_less_lowest == Expr(0, (Term(0, 2, 4, 2),))
    assert aligned(0, [Term(0, 1, 6, 1), Term(0, 1, 4, 1)]) is None


def test_a_map_is_found_from_what_is_read_through_it() -> None:
    given = transposed((2, 4, 6), (0, 2, 1))
    wanted = then(sliced(given.domain, (ZERO, Expr(1, ()), ZERO), (2, 3, 2), (1, 2, 1)), given)
    assert wanted is not None
    found = solve([wanted], [given])
    assert found is not None and then(found, given) == wanted


def test_a_map_that_is_not_determined_is_not_found() -> None:
    one_column = IndexMap((1, 4, 6), (1, 4), (ZERO, along(1, 4)))
    assert solve([one_column], [one_column]) is None


def test_digits_of_unlike_radices_are_not_independent() -> None:
    """Of six ranks, the third (rank // 2) changes where ranks differ by 3."""
    by_third = IndexMap((6,), (3,), (Expr(0, (Term(0, 2, 3, 1),)),))
    assert not independent_of(by_third, ((3, 2),))
    assert independent_of(by_third, ((1, 2),))


def test_a_window_of_ranks_says_nothing_of_a_pending_sum() -> None:
    view = whole(IndexMap((4, 3), (1, 3), (ZERO, along(1, 3))), partial=Partial("sum", ((1, 4),)))
    assert narrowed(view, ((0, 4), (1, 2))) is not None
    assert narrowed(view, ((1, 2), (0, 3))) is None
    from_rank_zero = IndexMap((4, 3), (4, 3), (ZERO, along(1, 3)))
    assert through(view, from_rank_zero) is None


def test_a_view_read_through_a_permutation_of_ranks() -> None:
    swapped = IndexMap((2, 3), (2, 3), (Expr(1, (Term(0, 1, 2, -1),)), along(1, 3)))
    seen = through(same((2, 3)), swapped)
    assert seen is not None and seen.index == swapped
    halves = View((2, 3), ((0, 2), (0, 3)), identity((2, 3)), Fraction(1), Partial("sum", ((1, 2),)))
    assert through(halves, swapped) is None, "a map that reads the rank cannot have it pending"


@pytest.mark.parametrize(
    ("groups", "digits"),
    [
        (((0, 1, 2, 3),), ((1, 4),)),
        (((0, 2), (1, 3)), ((2, 2),)),
        (((0, 1), (2, 3), (4, 5)), ((1, 2),)),
        (((0, 3), (1, 4), (2, 5)), ((3, 2),)),
        (((0, 1, 4, 5), (2, 3, 6, 7)), ((1, 2), (4, 2))),
        (((0, 3), (1, 2)), None),
        (((3, 2, 1, 0),), None),
        (((0, 1), (2, 5), (3, 4)), None),
    ],
)
def test_groups_as_digits(groups: tuple[tuple[int, ...], ...], digits: object) -> None:
    assert digits_of(groups) == digits


def test_digits_less_digits() -> None:
    assert without(((1, 8),), ((2, 2),)) == ((1, 2), (4, 2))
    assert without(((1, 6),), ((1, 4),)) is None
    assert joined(((4, 2), (1, 4))) == ((1, 8),)
