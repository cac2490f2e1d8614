"""From two profiles to an answer, with the real matching in between."""

from dataclasses import replace

import numpy as np
import pytest
from profiles import small_profile

from magneton.compare.model import Criteria
from magneton.compare.profiles import compare_profiles
from magneton.errors import Incomparable
from magneton.profile.model import Profile
from magneton.profile.sketches import stack_sketches
from magneton.record.sketching import sketch_array


def changed_from(profile: Profile, first: int) -> Profile:
    """The same chain, but other numbers flow from value ``first`` on, to the output."""
    random = np.random.default_rng(99)
    arrays = [
        np.random.default_rng(k).standard_normal((2, 4)).astype(np.float32)
        for k in range(len(profile.values))
    ]
    for k in range(first, len(arrays)):
        arrays[k] = random.standard_normal((2, 4)).astype(np.float32)
    return replace(
        profile,
        sketches=stack_sketches([sketch_array(array) for array in arrays]),
        outputs={"prefill.logits": arrays[-1]},
    )


def test_a_profile_against_itself_pairs_everything() -> None:
    profile = small_profile(operators=4)
    comparison = compare_profiles(profile, profile, Criteria())

    assert comparison.verdict == "no difference"
    assert [row.kind for row in comparison.rows if row.kind == "leftover"] == []
    assert comparison.same_work.divergence is None


def test_other_work_names_the_value_where_it_begins() -> None:
    profile = small_profile(operators=4)

    comparison = compare_profiles(profile, changed_from(profile, 2), Criteria())

    assert comparison.verdict == "not the same work"
    divergence = comparison.same_work.divergence
    assert divergence is not None
    assert divergence.text == "other numbers"
    assert divergence.baseline.producer == "aten.relu.default"
    assert divergence.baseline.source is not None
    assert divergence.baseline.source.line == 7


def test_what_must_not_be_compared_is_not_matched() -> None:
    profile = small_profile()
    other = replace(profile, origin=replace(profile.origin, device="elsewhere"), sketches=None)  # type: ignore[arg-type]  # matching would fail on it

    with pytest.raises(Incomparable):
        compare_profiles(profile, other, Criteria())
