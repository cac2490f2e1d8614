"""Every pair of the corpus by values alone: those that are wrong are refuted, those that are right never."""

import pytest
from scalify_cases import Pair, case_names, load_pair

from scalify.refute.budget import Search
from scalify.refute.refute import refute
from scalify.verdict import Reason, Refuted, Unknown, Verdict

WITHOUT_WITNESS = {
    "unknown/b35_stack_of_all_slices": "the outputs have other shapes",
    "unknown/b58_gain_read_as_another_type": "bits of another type have no meaning here",
    "unknown/b71_diagonal_of_rows_in_range": "it is equal wherever look-ups are in range",
}


def by_values(pair: Pair) -> Verdict:
    unproved = Unknown(reason=Reason.UNPROVED, outputs=(), assumptions=())
    return refute(pair.baseline, pair.candidate, pair.relations(), unproved, Search(draws=24))


@pytest.mark.parametrize("name", [name for name in case_names() if name.startswith("proved/")])
def test_what_is_right_is_never_refuted(name: str):
    assert isinstance(by_values(load_pair(name)), Unknown)


@pytest.mark.parametrize("name", [name for name in case_names() if name.startswith("unknown/")])
def test_what_is_wrong_is_refuted(name: str):
    pair = load_pair(name)
    verdict = by_values(pair)
    if name in WITHOUT_WITNESS:
        assert isinstance(verdict, Unknown)
        return
    assert isinstance(verdict, Refuted)
    assert {output.candidate for output in verdict.witness.outputs}.isdisjoint(pair.agreeing)
