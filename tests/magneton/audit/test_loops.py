"""Calls for one item each are seen where one call could do them all: not layers, not steps that follow."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import profiles
from wasteful import Program, clean_chain, seen

from magneton.audit.loops import per_item_loops
from magneton.audit.step import step_of
from magneton.profile.model import Profile
from magneton.workload import CALL, DECODE

lines = st.lists(st.integers(0, 30), min_size=1, max_size=10)


def loop(program: Program, value: int, items: int, *, modules: bool = False) -> list[int]:
    """A product and what follows it, for each row; gives the positions of the products."""
    weight = program.given(6, 7, role="parameter")
    products: list[int] = []
    for item in range(items):
        row = program.view("select.int", value, (1, 6), f'{{"dim":0,"index":{item}}}')
        same = program.view("t.default", weight, (7, 6))
        products.append(len(program.operators))
        module = f"model.layers.{item}" if modules else "model"
        program.op("mm.default", row, same, shape=(1, 7), line=40, module=module)
    return products


@given(lines, st.integers(8, 12))
@settings(deadline=None)
def test_a_loop_over_rows_is_seen_in_whatever_surrounds_it(before: list[int], items: int) -> None:
    program = Program()
    value = clean_chain(program, program.given(20, 6), before)
    products = loop(program, value, items)

    assert seen(per_item_loops, program.step()) == [products]


@given(lines)
@settings(deadline=None)
def test_nothing_is_seen_in_a_clean_chain(layers: list[int]) -> None:
    program = Program()

    assert not seen(per_item_loops, program.step(clean_chain(program, program.given(5, 6), layers)))


def test_few_items_and_repeated_layers_are_no_loop() -> None:
    few, layers = Program(), Program()
    loop(few, few.given(20, 6), 7)
    loop(layers, layers.given(20, 6), 12, modules=True)

    assert not seen(per_item_loops, few.step())
    assert not seen(per_item_loops, layers.step())


def test_what_needs_the_result_before_it_is_no_loop_over_items() -> None:
    program = Program()
    sequence, state = program.given(20, 6), program.given(1, 6)
    for item in range(10):
        row = program.view("select.int", sequence, (1, 6), f'{{"dim":0,"index":{item}}}')
        state = program.op("cell.default", row, state, shape=(1, 6), line=40)

    assert not seen(per_item_loops, program.step())


@pytest.mark.parametrize("phase", [CALL, DECODE])
def test_tokens_of_a_decode_come_one_by_one(phase: str) -> None:
    program = Program(phase, (phase,))
    products = loop(program, program.given(20, 6), 10)

    assert seen(per_item_loops, program.step()) == ([products] if phase == CALL else [])


@given(profiles(max_operators=6))
@settings(deadline=None)
def test_any_profile_is_survived(profile: Profile) -> None:
    for phase in (*profile.origin.workload.phases, CALL):
        assert all(sighting.operators for sighting in per_item_loops(step_of(profile, phase)))
