import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from magneton.systems.outputs import finish_outputs, project


def test_logits_are_those_of_the_last_position():
    logits_BTV = torch.arange(24.0).reshape(2, 3, 4)
    finished = finish_outputs({"logits": logits_BTV})
    np.testing.assert_array_equal(finished["logits"], logits_BTV[:, -1].numpy())
    np.testing.assert_array_equal(finished["tokens"], [3, 3])


def test_steps_of_decoding_are_stacked():
    steps = tuple(torch.full((2, 1, 5), float(index)) for index in range(3))
    finished = finish_outputs({"logits": steps})
    assert finished["logits"].shape == (3, 2, 5)
    assert finished["tokens"].shape == (3, 2)
    np.testing.assert_array_equal(finished["logits"][:, 0, 0], [0, 1, 2])


@pytest.mark.parametrize(
    ("output", "dtype"),
    [
        (torch.ones(2, dtype=torch.bfloat16), "float32"),
        (torch.ones(2, dtype=torch.float16), "float32"),
        (torch.ones(2, dtype=torch.float64), "float64"),
        (torch.ones(2, dtype=torch.int64), "int64"),
        (torch.ones(2, dtype=torch.bool), "bool"),
        (torch.ones(2, dtype=torch.complex64).conj(), "complex64"),
        (np.ones(2, dtype=np.float16), "float32"),
        (torch.ones(2, requires_grad=True), "float32"),
        (2.5, "float64"),
        (3, "int64"),
        (True, "bool"),
    ],
)
def test_whatever_comes_becomes_an_array(output: object, dtype: str):
    array = finish_outputs({"output": output})["output"]
    assert array.dtype == dtype
    assert array.reshape(-1)[0] in (1, 2.5, 3)


def test_only_logits_mean_something_by_name():
    output = torch.zeros(2, 3, 4)
    assert list(finish_outputs({"output.logits": output})) == ["output.logits"]
    assert finish_outputs({"output.logits": output})["output.logits"].shape == (2, 3, 4)


def test_what_is_stored_does_not_change_with_the_next_step():
    buffer = torch.zeros(1, 1, 4)
    finished = finish_outputs({"logits": buffer})
    buffer.fill_(1)
    assert finished["logits"].max() == 0


def test_large_outputs_become_projections():
    output = torch.randn(100, 200, generator=torch.Generator().manual_seed(0))
    whole = finish_outputs({"image": output}, largest_bytes=output.nbytes)
    reduced = finish_outputs({"image": output}, largest_bytes=output.nbytes - 1)
    assert whole["image"].shape == (100, 200)
    assert list(reduced) == ["image.projection"]
    np.testing.assert_allclose(reduced["image.projection"], project(output.numpy()))
    assert reduced["image.projection"].shape == (16,)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 200_000), st.integers(0, 1000), st.floats(1e-3, 1e3))
def test_projections_are_as_large_as_an_element_and_feel_a_swap(size: int, seed: int, scale: float):
    data = np.random.default_rng([seed, 1]).standard_normal(size) * scale
    one, other = 0, 1 + seed % (size - 1)
    swapped = data.copy()
    swapped[[one, other]] = swapped[[other, one]]
    projected = project(data)
    assert np.abs(projected).max() < 10 * np.abs(data).max()
    if other % 65521:
        assert np.abs(project(swapped) - projected).max() > 0


def test_elements_that_are_not_finite_do_not_spoil_a_projection():
    data = np.array([1.0, np.nan, np.inf, -np.inf, 2.0])
    np.testing.assert_allclose(project(data), project(np.array([1.0, 0.0, 0.0, 0.0, 2.0])))


def test_complex_and_integer_outputs_have_projections_too():
    assert np.isrealobj(project(np.ones(3, dtype=np.complex64)))
    assert np.abs(project(np.arange(5))).max() > 0


def test_an_output_of_no_elements():
    assert finish_outputs({"output": torch.zeros(0, 3)})["output"].shape == (0, 3)
