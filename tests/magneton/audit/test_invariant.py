"""What depends on weights and constants only is seen; tables as long as an input are not, but for masks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import profiles
from wasteful import Program, clean_chain, seen

from magneton.audit.invariant import loop_invariant_work
from magneton.audit.step import step_of
from magneton.profile.model import Profile, Role
from magneton.workload import CALL

lines = st.lists(st.integers(0, 30), min_size=1, max_size=6)


def weight_norm(program: Program, role: Role = "parameter") -> int:
    weight = program.given(6, 6, role=role, name="v")
    norm = program.op("norm.default", weight, shape=(6, 1), line=40)
    return program.op("div.Tensor", weight, norm, shape=(6, 6), line=41)


@given(lines, lines)
@settings(deadline=None)
def test_a_norm_of_weights_is_one_piece_in_whatever_surrounds_it(before: list[int], after: list[int]) -> None:
    program = Program()
    value = clean_chain(program, program.given(5, 6), before)
    start = len(program.operators)
    folded = program.view("t.default", weight_norm(program), (6, 6))
    value = clean_chain(program, program.op("mm.default", value, folded, shape=(5, 6)), after)

    assert seen(loop_invariant_work, program.step(value)) == [[start, start + 1]]


@given(lines)
@settings(deadline=None)
def test_nothing_is_seen_in_a_clean_chain(layers: list[int]) -> None:
    program = Program()

    assert not seen(loop_invariant_work, program.step(clean_chain(program, program.given(5, 6), layers)))


@pytest.mark.parametrize(("role", "many"), [("parameter", 1), ("buffer", 1), ("constant", 1), ("input", 0)])
def test_what_a_step_brings_is_no_constant(role: Role, many: int) -> None:
    program = Program()
    weight_norm(program, role)

    assert len(seen(loop_invariant_work, program.step())) == many


def test_evidence_names_the_weights_through_views() -> None:
    program = Program()
    transposed = program.view("t.default", program.given(6, 6, role="parameter", name="w"), (6, 6))
    program.op("exp.default", transposed, shape=(6, 6))

    (sighting,) = loop_invariant_work(program.step())
    assert "only on w:" in sighting.evidence


def test_weights_that_the_step_changes_are_no_constants() -> None:
    program = Program()
    weight_norm(program)
    program.op("add_.Tensor", shape=(6, 6), into=0)

    assert not seen(loop_invariant_work, program.step())


def test_weights_that_are_trained_are_no_constants() -> None:
    program = Program()
    weight_norm(program)
    program.op("tanh_backward.default", program.given(6, 6), shape=(6, 6))

    assert not seen(loop_invariant_work, program.step())


def made(length: int, shape: tuple[int, ...], dtype: str = "float32") -> Program:
    """A table of ``shape`` that is made of a row of ``length``, beside an input that is 5 long."""
    program = Program()
    program.op("tanh.default", program.given(5, 6), shape=(5, 6))
    row = program.op("arange.default", shape=(length,))
    program.op("cos.default", row, shape=shape, dtype=dtype)
    return program


def test_a_table_as_long_as_an_input_is_made_anew_for_good_reason() -> None:
    assert seen(loop_invariant_work, made(17, (17,)).step()) == [[1, 2]]
    assert not seen(loop_invariant_work, made(5, (5,)).step())
    assert not seen(loop_invariant_work, made(5, (5, 5)).step())


def test_a_mask_as_wide_as_an_input_is_worth_keeping() -> None:
    assert seen(loop_invariant_work, made(5, (5, 5), "bool").step()) == [[2]]


def test_a_table_as_long_as_the_features_that_weights_have_is_fixed() -> None:
    program = Program()
    program.op("mm.default", program.given(5, 6), program.given(6, 7, role="parameter"), shape=(5, 7))
    program.op("cos.default", program.op("arange.default", shape=(6,)), shape=(6,))

    assert seen(loop_invariant_work, program.step()) == [[1, 2]]


def test_memory_that_is_filled_with_what_the_step_brings_is_not_fixed() -> None:
    program = Program()
    value, weight = program.given(5, 6), program.given(9, 9, role="parameter")
    own = program.op("clone.default", weight, shape=(9, 9))
    program.op("copy_.default", value, shape=(9, 9), into=own)

    assert not seen(loop_invariant_work, program.step())


@given(profiles(max_operators=6))
@settings(deadline=None)
def test_any_profile_is_survived(profile: Profile) -> None:
    for phase in (*profile.origin.workload.phases, CALL):
        assert all(sighting.operators for sighting in loop_invariant_work(step_of(profile, phase)))
