"""A tensor that grows by concatenations of one line is seen; concatenations that do not are not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import profiles
from wasteful import Program, clean_chain, seen

from magneton.audit.growing import growing_concatenations
from magneton.audit.step import step_of
from magneton.profile.model import Profile
from magneton.workload import CALL

lines = st.lists(st.integers(0, 30), min_size=1, max_size=6)


def grown(program: Program, layers: list[int], times: int, *, line_step: int = 0) -> list[int]:
    value, whole = program.given(1, 6), program.given(1, 6)
    places: list[int] = []
    for time in range(times):
        value = clean_chain(program, value, layers)
        places.append(len(program.operators))
        shape = (time + 2, 6)
        whole = program.op("cat.default", whole, value, shape=shape, line=40 + time * line_step)
        whole = program.view("view.default", whole, shape)
    return places


@given(lines, st.integers(3, 8))
@settings(deadline=None)
def test_a_growing_tensor_is_seen_in_whatever_surrounds_it(layers: list[int], times: int) -> None:
    program = Program()
    places = grown(program, layers, times)
    step = program.step()

    (sighting,) = growing_concatenations(step)
    assert [int(op) for op in sighting.operators] == places
    assert sighting.avoidable == pytest.approx(1 - (times + 1) / sum(range(2, times + 2)))


@pytest.mark.parametrize(("times", "line_step"), [(2, 0), (5, 1)])
def test_two_in_a_row_and_those_of_several_lines_do_not_grow(times: int, line_step: int) -> None:
    program = Program()
    grown(program, [1], times, line_step=line_step)

    assert not seen(growing_concatenations, program.step())


def test_parts_of_an_earlier_one_are_not_made_longer() -> None:
    program = Program()
    value = program.given(4, 6)
    for _ in range(5):
        whole = program.op("cat.default", value, value, shape=(8, 6), line=40)
        value = program.view("slice.Tensor", whole, (4, 6))

    assert not seen(growing_concatenations, program.step())


@given(profiles(max_operators=6))
@settings(deadline=None)
def test_any_profile_is_survived(profile: Profile) -> None:
    for phase in (*profile.origin.workload.phases, CALL):
        assert all(sighting.operators for sighting in growing_concatenations(step_of(profile, phase)))
