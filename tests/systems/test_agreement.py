"""Every adapter, in its system's real environment: the same work as the others, and as itself.

A recording begins with repeated steps that must be the same to the bit (``in_worker/repeated.py``).
"""

import numpy as np
import pytest
from numpy.typing import NDArray
from recorded import CASES, ENGINES, GIVEN, Recordings

from magneton.compare.model import Criteria
from magneton.compare.profiles import compare_profiles
from magneton.compare.same_work import check_same_work
from magneton.profile.continuation import continuation_of
from magneton.profile.model import Profile

pytestmark = pytest.mark.systems

OTHERS = ("transformers", *ENGINES)
FLOAT32 = [case for case in CASES if CASES[case].workload.dtype == "float32"]
PAIRS = [("torch", other) for other in OTHERS] + [("vllm", "sglang")]


def output(profile: Profile, name: str) -> NDArray[np.float64]:
    """As numbers that can be subtracted; token ids are small enough to stay exact."""
    return profile.outputs[name].astype(np.float64)


@pytest.mark.parametrize("case", FLOAT32)
@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
def test_both_do_the_same_work(recordings: Recordings, pair: tuple[str, str], case: str):
    baseline, candidate = (recordings.of(system, case) for system in pair)
    expected = {f"{phase}.{name}" for phase in CASES[case].workload.phases for name in ("logits", "tokens")}
    assert expected <= candidate.outputs.keys() == baseline.outputs.keys()
    for name in baseline.outputs:
        allowed = 1e-4 if name.endswith("logits") else 0
        np.testing.assert_allclose(output(candidate, name), output(baseline, name), atol=allowed, rtol=0)
    assert check_same_work(baseline, candidate).status == "same"


@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
def test_a_report_finds_the_same_work_in_them(recordings: Recordings, pair: tuple[str, str]):
    baseline, candidate = map(recordings.of, pair)
    comparison = compare_profiles(baseline, candidate, Criteria())
    assert comparison.same_work.status == "same"
    assert comparison.rows


@pytest.mark.parametrize("case", FLOAT32)
@pytest.mark.parametrize("system", ("torch", *OTHERS))
def test_nothing_is_doubtful(recordings: Recordings, system: str, case: str):
    assert recordings.of(system, case).doubts == ()


@pytest.mark.parametrize("system", OTHERS)
def test_prompts_of_a_batch_do_not_mix(recordings: Recordings, system: str):
    logits = output(recordings.of(system), "prefill.logits")
    assert np.abs(logits[0] - logits[1]).max() > 0.1
    assert np.abs(logits[1] - logits[2]).max() > 0.1


@pytest.mark.parametrize("system", OTHERS)
def test_decode_is_fed_the_likeliest_tokens_unless_others_are_given(recordings: Recordings, system: str):
    greedy, given = recordings.of(system), recordings.of(system, "given")
    chosen = np.concatenate([output(greedy, "prefill.tokens")[None], output(greedy, "decode.tokens")[:-1]])
    np.testing.assert_array_equal(output(greedy, "decode.fed"), chosen)
    np.testing.assert_array_equal(output(given, "decode.fed"), GIVEN)
    assert continuation_of(given) == GIVEN
    assert not (chosen == np.array(GIVEN)).any(axis=0).all()  # each row has to be held to them


@pytest.mark.parametrize("system", OTHERS)
def test_given_tokens_change_what_follows_and_not_what_went_before(recordings: Recordings, system: str):
    greedy, given = recordings.of(system), recordings.of(system, "given")
    np.testing.assert_array_equal(output(given, "prefill.logits"), output(greedy, "prefill.logits"))
    difference = output(given, "decode.logits") - output(greedy, "decode.logits")
    assert np.abs(difference).max() > 0.1


@pytest.mark.parametrize("system", ENGINES)
def test_half_precision_runs(recordings: Recordings, system: str):
    half, whole = recordings.of(system, "bfloat16"), recordings.of(system)
    assert half.origin.workload.dtype == "bfloat16"
    difference = np.abs(output(half, "prefill.logits") - output(whole, "prefill.logits"))
    assert 0 < difference.max() < 0.3
    assert output(half, "decode.tokens").shape == (3, 3)
