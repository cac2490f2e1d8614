from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from comparisons import a_side

from magneton.compare.model import SameWork
from magneton.compare.same_work import check_same_work
from magneton.workload import Workload

LOGITS = np.random.default_rng(0).standard_normal((2, 50)).astype(np.float32)


def checked(one: dict[str, Any], other: dict[str, Any], **options: Any) -> SameWork:
    return check_same_work(replace(a_side(), outputs=one), replace(a_side(), outputs=other), **options)


def test_rounding_is_the_same_work() -> None:
    nearly = LOGITS * np.float32(1 + 1e-6)

    assert checked({"prefill.logits": LOGITS}, {"prefill.logits": nearly}).status == "same"


@pytest.mark.parametrize(
    "other",
    [
        LOGITS[::-1],  # two prompts of a batch swapped: the same numbers in another order
        LOGITS + np.eye(2, 50, dtype=np.float32),
        LOGITS[:, :49],
        np.where(np.arange(50) == 7, np.nan, LOGITS),
        np.where(np.arange(50) == 7, np.inf, LOGITS),
    ],
)
def test_other_outputs_are_not_the_same_work(other: np.ndarray) -> None:
    same_work = checked({"prefill.logits": LOGITS}, {"prefill.logits": other})

    assert same_work.status == "different"
    assert same_work.outputs[0].problem


def test_nans_in_the_same_places_agree() -> None:
    holed = np.where(np.arange(50) == 7, np.nan, LOGITS)

    assert checked({"x": holed}, {"x": holed.copy()}).status == "same"


def test_an_output_that_one_side_lacks_is_not_the_same_work() -> None:
    same_work = checked({"a": LOGITS}, {"a": LOGITS, "b": LOGITS})

    assert same_work.status == "different"
    assert "only the candidate" in (same_work.outputs[1].problem or "")


def test_without_outputs_nothing_is_claimed() -> None:
    assert checked({}, {}).status == "unchecked"


def test_the_tolerance_follows_the_dtype_and_can_be_overridden() -> None:
    off = LOGITS + np.float32(2e-3)

    def status(dtype: Any, tolerance: float | None = None) -> str:
        work = Workload(phases=("prefill",), dtype=dtype)
        one, other = (replace(a_side(workload=work), outputs={"logits": array}) for array in (LOGITS, off))
        return check_same_work(one, other, tolerance).status

    assert status("float32") == "different"
    assert status("float16") == "same"
    assert status("float32", 1e-2) == "same"
    assert status("bfloat16", 1e-4) == "different"


def test_tokens_that_differ_are_told_by_place() -> None:
    one, other = np.array([[3, 5], [7, 9]]), np.array([[3, 6], [7, 9]])

    (check,) = checked({"prefill.tokens": one}, {"prefill.tokens": other}).outputs

    assert check.differing == ((0, 1),)
    assert check.problem is not None
    assert "5 against 6" in check.problem


def test_a_tie_between_agreeing_logits_is_the_same_work() -> None:
    logits = np.array([[1.0, 1.0, 0.0]], dtype=np.float32)
    one = {"prefill.logits": logits, "prefill.tokens": np.array([0])}
    other = {"prefill.logits": logits + np.float32(1e-7), "prefill.tokens": np.array([1])}

    same_work = checked(one, other)

    assert same_work.status == "same"
    assert "tie" in same_work.outputs[1].note


def test_numbers_that_nothing_was_chosen_from_forgive_no_difference() -> None:
    one = {"call.scores": LOGITS, "call.indices": np.array([0])}
    other = {"call.scores": LOGITS, "call.indices": np.array([1])}

    assert checked(one, other).status == "different"


def test_a_number_alone_can_be_an_output() -> None:
    assert checked({"loss": np.array(1.0)}, {"loss": np.array(1.5)}).status == "different"
    assert checked({"count": np.array(3)}, {"count": np.array(4)}).status == "different"
    assert checked({"count": np.array(3)}, {"count": np.array(3)}).status == "same"


def test_a_recording_that_does_not_say_what_decode_was_fed_is_told_by_its_age() -> None:
    fed = {"decode.fed": np.array([[1], [2]])}

    work = checked(fed, {})

    assert work.status == "different"
    assert "an older recording does not say" in (work.outputs[0].problem or "")


def test_decodes_that_were_fed_other_tokens_are_not_the_same_work() -> None:
    one, other = ({"decode.fed": np.array([[1], [token]])} for token in (2, 3))

    work = checked(one, other)

    assert work.status == "different"
    assert "the first at (1, 0): 2 against 3" in (work.outputs[0].problem or "")
