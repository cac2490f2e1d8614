import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magneton.errors import MagnetonError
from magneton.models.tokens import token_ids
from magneton.workload import Workload

workloads = st.builds(
    Workload,
    batch=st.integers(1, 6),
    prompt_tokens=st.integers(1, 20),
    decode_steps=st.integers(0, 5),
    seed=st.integers(0, 2**32),
)


@given(workloads, st.integers(6, 50_000))
def test_shapes_range_and_rows(workload: Workload, vocab_size: int):
    prompt, decode = token_ids(workload, vocab_size)
    assert prompt.shape == (workload.batch, workload.prompt_tokens)
    assert decode.shape == (workload.decode_steps, workload.batch)
    assert prompt.dtype == decode.dtype == np.int64
    everything = np.concatenate([prompt.reshape(-1), decode.reshape(-1)])
    assert everything.min() >= 0
    assert everything.max() < vocab_size
    assert np.unique(prompt, axis=0).shape[0] == workload.batch


def test_special_tokens_are_left_out():
    prompt, decode = token_ids(Workload(batch=4, prompt_tokens=500), 20)
    assert min(prompt.min(), decode.min()) == 3


def test_ids_are_the_same_in_every_interpreter():
    """Written down: another NumPy on the other side must not draw other ids."""
    prompt, decode = token_ids(Workload(batch=2, prompt_tokens=3, decode_steps=2, seed=7), 1024)
    assert prompt.tolist() == [[794, 24, 628], [795, 534, 64]]
    assert decode.tolist() == [[405, 648], [191, 908]]


def test_the_seed_matters():
    one, other = (token_ids(Workload(seed=seed), 1024)[0] for seed in (0, 1))
    assert not np.array_equal(one, other)


def test_more_prompts_than_tokens_are_refused():
    with pytest.raises(MagnetonError, match="a batch of 8 different prompts"):
        token_ids(Workload(batch=8), 5)
