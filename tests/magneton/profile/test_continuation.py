"""What decode steps were fed, read from a recording that may come from anywhere."""

from typing import Any

import numpy as np
import pytest
from profiles import an_origin, small_profile

from magneton.errors import InvalidProfile
from magneton.profile.continuation import FED, continuation_of
from magneton.profile.model import Profile
from magneton.workload import Workload


def recorded(fed: Any) -> Profile:
    origin = an_origin(workload=Workload(decode_steps=2, batch=3))
    return small_profile(origin=origin, outputs={} if fed is None else {FED: np.array(fed)})


def test_the_tokens_of_each_step() -> None:
    assert continuation_of(recorded([[1, 2, 3], [4, 5, 6]])) == ((1, 2, 3), (4, 5, 6))


def test_a_recording_that_does_not_say() -> None:
    assert continuation_of(recorded(None)) is None


@pytest.mark.parametrize(
    "fed",
    [[[1, 2, 3]], [[1, 2], [3, 4]], [[1.0, 2.0, 3.0]] * 2, [[1, 2, -3]] * 2, [], 7],
    ids=["too few steps", "too few prompts", "no ids", "negative", "empty", "one number"],
)
def test_what_cannot_be_tokens_of_the_workload_is_refused(fed: Any) -> None:
    with pytest.raises(InvalidProfile):
        continuation_of(recorded(fed))
