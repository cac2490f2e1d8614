"""What nobody reads is seen whole, and nothing that may leave the step; of logits, the unused rows."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import profiles
from wasteful import Program, clean_chain, seen

from magneton.audit.results import dead_results, mostly_unused_results
from magneton.audit.step import step_of
from magneton.profile.model import Profile
from magneton.workload import CALL, PREFILL

lines = st.lists(st.integers(0, 30), min_size=1, max_size=6)


@given(lines, lines)
@settings(deadline=None)
def test_a_dead_chain_is_seen_in_whatever_surrounds_it(before: list[int], after: list[int]) -> None:
    program = Program()
    value = clean_chain(program, program.given(5, 6), before)
    start = len(program.operators)
    wide = program.op("mul.Scalar", value, shape=(5, 9), line=40)
    program.op("sum.default", program.view("view.default", wide, (45,)), shape=(3,), line=41)
    end = clean_chain(program, value, after)

    assert seen(dead_results, program.step(end)) == [[start, start + 2]]


@given(lines)
@settings(deadline=None)
def test_nothing_is_seen_in_a_clean_chain(layers: list[int]) -> None:
    program = Program()
    step = program.step(clean_chain(program, program.given(5, 6), layers))

    assert not seen(dead_results, step)
    assert not seen(mostly_unused_results, step)


def test_without_declared_outputs_nothing_is_dead() -> None:
    program = Program()
    program.op("mul.Scalar", program.given(5, 6), shape=(5, 9))

    assert not seen(dead_results, program.step())


def test_a_prefill_alone_may_keep_results_for_a_decode() -> None:
    program = Program(PREFILL, (PREFILL,))
    value = program.given(5, 6)
    program.op("mul.Scalar", value, shape=(5, 9))

    assert not seen(dead_results, program.step(program.op("tanh.default", value, shape=(5, 6))))


def test_what_is_written_into_older_memory_is_used() -> None:
    program = Program()
    value, cache = program.given(5, 6), program.given(7, 9, role="buffer")
    part = program.op("mul.Scalar", value, shape=(7, 9), line=1)
    program.op("copy_.default", part, shape=(7, 9), into=cache, line=2)

    assert not seen(dead_results, program.step(program.op("tanh.default", value, shape=(5, 6))))


@pytest.mark.parametrize("effect", ["sync", "random"])
def test_what_the_host_or_the_generator_sees_is_used(effect: str) -> None:
    program = Program()
    value = program.given(5, 6)
    program.op("seen.default", value, shape=(5, 9), effect=effect)  # pyright: ignore[reportArgumentType] - drawn

    assert not seen(dead_results, program.step(program.op("tanh.default", value, shape=(5, 6))))


def test_the_last_state_of_a_line_that_is_of_use_is_not_dead() -> None:
    program = Program()
    state = program.given(5, 9)
    used = state
    for _ in range(3):
        used, state = state, program.op("mul.Scalar", state, shape=(5, 9), line=3)

    assert not seen(dead_results, program.step(program.op("sum.default", used, shape=(5,))))


def head(program: Program, value: int, taken: int, *, rows: int = 8, whole: bool = False) -> int:
    weight = program.given(6, 20, role="parameter")
    logits = program.op("mm.default", value, weight, shape=(rows, 20), line=50)
    cast = program.op(
        "_to_copy.default", program.view("view.default", logits, (1, rows, 20)), shape=(1, rows, 20)
    )
    if whole:
        program.op("sum.default", cast, shape=())
    attributes = '{"dim":1,"start":0}'
    part = program.view("slice.Tensor", cast, (1, taken, 20), attributes)
    return program.op("tanh.default", part, shape=(1, taken, 20))


@given(lines, st.integers(1, 4))
@settings(deadline=None)
def test_logits_of_which_few_rows_are_used_are_seen(before: list[int], taken: int) -> None:
    program = Program()
    value = clean_chain(program, program.given(8, 6), before)
    value = program.op("cumsum.default", value, shape=(8, 6))
    start = len(program.operators)
    step = program.step(head(program, value, taken))

    (sighting,) = mostly_unused_results(step)
    assert sighting.operators == (start, start + 2)
    assert sighting.avoidable == pytest.approx(1 - taken / 8)


@pytest.mark.parametrize(("taken", "whole"), [(5, False), (1, True)])
def test_rows_that_are_mostly_used_are_no_waste(taken: int, whole: bool) -> None:
    program = Program()

    assert not seen(
        mostly_unused_results, program.step(head(program, program.given(8, 6), taken, whole=whole))
    )


def test_layers_before_it_that_work_row_by_row_shrink_too() -> None:
    program = Program()
    value = clean_chain(program, program.given(8, 6), [1])

    assert seen(mostly_unused_results, program.step(head(program, value, 1))) == [[1, 2, 3, 5]]


def test_columns_that_are_unused_are_not_rows() -> None:
    program = Program()
    product = program.op(
        "mm.default", program.given(8, 8), program.given(8, 8, role="parameter"), shape=(8, 8)
    )
    column = program.view("select.int", product, (8,), '{"dim":-1,"index":0}')

    assert not seen(mostly_unused_results, program.step(program.op("tanh.default", column, shape=(8,))))


@given(profiles(max_operators=6))
@settings(deadline=None)
def test_any_profile_is_survived(profile: Profile) -> None:
    for phase in (*profile.origin.workload.phases, CALL):
        step = step_of(profile, phase)
        for sighting in (*dead_results(step), *mostly_unused_results(step)):
            assert sighting.operators
            assert sighting.avoidable is not None and 0 < sighting.avoidable <= 1
