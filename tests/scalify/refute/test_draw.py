"""What inputs are filled with: the same everywhere, within what is known of them, in few binary digits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalify.ir.graph import DType, TensorType
from scalify.refute.bits import bits, key_of
from scalify.refute.draw import FAMILIES, Input, drawn, drawn_at
from scalify.verdict import Domain, Draw

SEEDS = st.integers(0, 2**40)
DRAWS = st.builds(Draw, family=st.sampled_from(sorted(FAMILIES)), seed=SEEDS)
SHAPES = st.lists(st.integers(1, 5), max_size=3).map(tuple)


def filled(dtype: DType, shape: tuple[int, ...], domain: Domain | None = None, role: str = "input") -> Input:
    return Input(name="x", type=TensorType(dtype, shape), role=role, domain=domain or Domain())


def test_bits_are_those_of_other_machines():
    # SplitMix64 from state 0, as published.
    assert [hex(each) for each in bits(0, np.arange(3))] == [
        "0xe220a8397b1dcdaf",
        "0x6e789e6aa1b965f4",
        "0x6c45d188009454f",
    ]
    assert key_of("odd sixteenths", 0, "x", 0) == key_of("odd sixteenths", 0, "x", 0)


@given(draw=DRAWS, shape=SHAPES, role=st.sampled_from(["input", "parameter"]))
def test_any_element_can_be_made_alone(draw: Draw, shape: tuple[int, ...], role: str):
    given = filled("f32", shape, role=role)
    whole = drawn(draw, given)
    for number in range(whole.size):
        assert drawn_at(draw, given, np.array([number])) == whole.ravel()[number]


@given(draw=DRAWS, size=st.integers(1, 40), edges=st.lists(st.integers(-50, 50), max_size=4))
def test_whole_numbers_are_rows_that_exist(draw: Draw, size: int, edges: list[int]):
    domain = Domain(size=size, edges=tuple(map(float, edges)))
    values = drawn(draw, filled("i64", (30,), domain))
    assert values.dtype == np.int64
    assert values.min() >= 0 and values.max() < size


@given(draw=DRAWS, count=st.integers(2, 12), more=st.integers(0, 5))
def test_rows_that_are_written_to_differ(draw: Draw, count: int, more: int):
    values = drawn(draw, filled("i64", (count,), Domain(size=count + more, distinct=True)))
    assert len(set(values.tolist())) == count
    assert values.max() < count + more


@given(draw=DRAWS, count=st.integers(2, 12), more=st.integers(0, 5))
def test_any_of_rows_that_differ_can_be_made_alone(draw: Draw, count: int, more: int):
    given = filled("i64", (count,), Domain(size=count + more, distinct=True))
    whole = drawn(draw, given)
    for number in range(count):
        assert drawn_at(draw, given, np.array([number])) == whole[number]


@given(draw=DRAWS, shape=SHAPES)
def test_what_is_divided_by_is_positive(draw: Draw, shape: tuple[int, ...]):
    assert (drawn(draw, filled("f32", shape, Domain(positive=True))) > 0).all()


@given(draw=DRAWS, role=st.sampled_from(["input", "parameter"]))
def test_real_numbers_have_few_digits(draw: Draw, role: str):
    values = drawn(draw, filled("f32", (8, 16), role=role))
    assert (values * 2.0**20 == np.rint(values * 2.0**20)).all()


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_families_and_seeds_and_names_and_copies_are_told_apart(family: str):
    given = filled("f32", (64,))
    one = drawn(Draw(family=family, seed=0), given)
    assert (one != drawn(Draw(family=family, seed=1), given)).any()
    assert (one != drawn(Draw(family=family, seed=0), given, copy=1)).any()


def test_edges_are_met():
    domain = Domain(size=1000, edges=(511.0, 512.0))
    values = drawn(Draw(family="edges", seed=0), filled("i64", (50,), domain))
    assert {511, 512} <= set(values.tolist())
