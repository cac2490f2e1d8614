from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from magneton.record.plan import MOST_STEPS, RecordPlan, order, steps_for, turns

rounds = st.integers(1, 20)
phases = st.lists(st.sampled_from(["prefill", "decode", "call"]), min_size=1, unique=True)


@given(rounds, phases, st.integers(1, 2))
def test_every_block_is_run_exactly_once(rounds: int, phases: list[str], sides: int):
    seen = Counter(turns(rounds, phases, sides))

    assert set(seen.values()) == {1}
    assert len(seen) == rounds * 2 * len(phases) * sides


@given(rounds, phases)
def test_blocks_of_a_pair_are_neighbours(rounds: int, phases: list[str]):
    sequence = list(turns(rounds, phases, 2))

    for first, second in zip(sequence[::2], sequence[1::2], strict=True):
        assert (first.round, first.pass_, first.phase) == (second.round, second.pass_, second.phase)
        assert {first.side, second.side} == {0, 1}


@given(rounds, phases)
def test_either_side_goes_first_equally_often(rounds: int, phases: list[str]):
    for pass_ in ("clean", "timeline"):
        blocks = [
            turn for turn in turns(rounds, phases, 2) if turn.pass_ == pass_ and turn.phase == phases[0]
        ]
        first = [turn.side for turn in blocks[::2]]

        assert first == [round % 2 for round in range(rounds)]  # A B, B A, A B, ...


def test_passes_swap_places_under_either_order_of_sides():
    leads = {
        (turn.pass_, turn.side)
        for round in range(4)
        for turn in [next(t for t in turns(4, ("call",), 2) if t.round == round)]
    }

    assert leads == {("clean", 0), ("clean", 1), ("timeline", 0), ("timeline", 1)}


def test_order_is_abba():
    assert [side for round in range(4) for side in order("AB", round)] == list("ABBAABBA")


@given(st.floats(1e-6, 100), st.floats(1e-9, 1000))
def test_steps_fill_the_block_and_no_more(length_s: float, step_s: float):
    steps = steps_for(length_s, step_s)

    assert 1 <= steps <= MOST_STEPS
    if steps < MOST_STEPS:
        assert steps * step_s >= length_s * (1 - 1e-9)
    if steps > 1:
        assert (steps - 1) * step_s < length_s * (1 + 1e-9)


def test_a_step_too_short_for_the_clock_does_not_divide_by_zero():
    assert steps_for(1.0, 0.0) == MOST_STEPS


@given(st.floats(0, 100))
def test_blocks_are_long_enough_for_the_meter(window_s: float):
    plan = RecordPlan()

    assert plan.block_length_s(window_s) >= max(window_s, plan.block_s)
    assert plan.timeline_length_s(window_s) >= max(window_s, plan.timeline_s)


@given(st.integers(0, 9), st.integers(1, 3), st.floats(0.1, 1e3))
def test_replays_keep_to_the_budget(replay_rounds: int, phases: int, budget_s: float):
    plan = RecordPlan(replay_rounds=replay_rounds, replay_budget_s=budget_s)

    assert plan.replay_call_s(phases) * replay_rounds * phases <= budget_s * (1 + 1e-9)


def test_longer_blocks_get_more_time():
    plan = RecordPlan()

    assert plan.block_timeout_s(10, 5.0) >= plan.timeouts.block_s + 50.0


def test_a_plan_without_rounds_is_refused():
    with pytest.raises(ValueError, match="at least one round"):
        RecordPlan(rounds=0)
