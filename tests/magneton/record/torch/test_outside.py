"""Memory that NumPy shares: what it writes there is another value, though no operator made it."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from magneton.profile.model import Profile
from magneton.record.torch.capture import trace_callable


@pytest.fixture(autouse=True)
def inference():
    with torch.no_grad():
        yield


def products(profile: Profile) -> list[tuple[int, ...]]:
    return [op.inputs for op in profile.operators if op.name.startswith("aten.mul")]


def test_a_write_by_numpy_makes_another_value():
    shared = np.arange(8.0)
    buffer = torch.from_numpy(shared)

    def step() -> None:
        buffer.mul(2.0)
        buffer.mul(2.0)
        shared[3] = 99.0
        buffer.mul(2.0)

    profile = trace_callable(step, ())
    first, second, third = products(profile)
    assert first == second != third
    assert profile.values[third[0]].producer is None
    assert profile.sketches.rms[third[0]] > profile.sketches.rms[first[0]]


def test_a_write_over_what_an_operator_made():
    kept: list[Tensor] = []

    def step(x: Tensor) -> Tensor:
        made = x + 1.0
        made.numpy()[:] = 7.0
        kept.append(made)
        return made.mul(2.0)

    profile = trace_callable(step, (torch.zeros(4),))
    ((value,),) = products(profile)
    assert profile.values[value].producer is None
    assert profile.sketches.rms[value] == pytest.approx(7.0)


def test_a_view_of_memory_that_was_written_shows_the_new_content():
    shared = np.zeros(6, dtype=np.int64)
    buffer = torch.from_numpy(shared)

    def step() -> None:
        for token in (5, 9):
            shared[:] = token
            buffer[2:4].mul(2)

    profile = trace_callable(step, ())
    first, second = products(profile)
    assert profile.sketches.rms[first[0]] == pytest.approx(5.0)
    assert profile.sketches.rms[second[0]] == pytest.approx(9.0)


@given(st.lists(st.booleans(), min_size=1, max_size=8))
def test_a_new_value_exactly_where_something_was_written(writes: list[bool]):
    shared = np.ones(5)
    buffer = torch.from_numpy(shared)

    def step() -> None:
        for number, written in enumerate(writes):
            if written:
                shared[number % 5] += 1.0
            buffer.mul(2.0)

    with torch.no_grad():
        inputs = [given for given, *_ in products(trace_callable(step, ()))]
    changes = [one != other for one, other in pairwise(inputs)]
    assert changes == writes[1:]
