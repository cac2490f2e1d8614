import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magneton.errors import MagnetonError
from magneton.models.tokens import check_continuation, first_differing, prompt_ids
from magneton.workload import Continuation, Workload

workloads = st.builds(
    Workload,
    batch=st.integers(1, 6),
    prompt_tokens=st.integers(1, 20),
    decode_steps=st.integers(0, 5),
    seed=st.integers(0, 2**32),
)


@given(workloads, st.integers(6, 50_000))
def test_shapes_range_and_rows(workload: Workload, vocab_size: int):
    prompt = prompt_ids(workload, vocab_size)
    assert prompt.shape == (workload.batch, workload.prompt_tokens)
    assert prompt.dtype == np.int64
    assert prompt.min() >= 0
    assert prompt.max() < vocab_size
    assert np.unique(prompt, axis=0).shape[0] == workload.batch


def test_special_tokens_are_left_out():
    assert prompt_ids(Workload(batch=4, prompt_tokens=500), 20).min() == 3


def test_ids_are_the_same_in_every_interpreter():
    """Written down: another NumPy on the other side must not draw other ids."""
    prompt = prompt_ids(Workload(batch=2, prompt_tokens=3, decode_steps=2, seed=7), 1024)
    assert prompt.tolist() == [[794, 24, 628], [795, 191, 309]]


def test_the_seed_matters():
    one, other = (prompt_ids(Workload(seed=seed), 1024) for seed in (0, 1))
    assert not np.array_equal(one, other)


def test_more_prompts_than_tokens_are_refused():
    with pytest.raises(MagnetonError, match="a batch of 8 different prompts"):
        prompt_ids(Workload(batch=8), 5)


@pytest.mark.parametrize(
    "given_tokens",
    [((1, 2),), ((1, 2), (3,)), ((1, 2), (3, 10)), ((1, 2), (3, -1)), ((1, 2), (3, 4), (5, 6))],
    ids=["too few steps", "a row too short", "no such token", "negative", "too many steps"],
)
def test_tokens_that_do_not_fit_are_refused(given_tokens: Continuation):
    with pytest.raises(MagnetonError, match="do not fit 2 steps of 2 prompts and a vocabulary of 10"):
        check_continuation(given_tokens, Workload(batch=2, decode_steps=2), 10)


def test_tokens_that_fit_pass():
    check_continuation(((1, 2), (3, 9)), Workload(batch=2, decode_steps=2), 10)


def test_of_each_prompt_the_first_token_that_differs_is_named():
    chosen, wanted = ((1, 2), (3, 4), (5, 6)), ((1, 7), (8, 9), (0, 6))
    assert list(first_differing(chosen, wanted)) == [(0, 1, 8), (1, 0, 7)]
    assert not list(first_differing(chosen, chosen))
