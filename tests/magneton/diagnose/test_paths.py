from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from profiles import an_operator, small_profile

from magneton.diagnose.paths import Deviation, NoDeviation, find_deviation, stacks_of
from magneton.profile.model import Frame, OpId, Stack, StackId


def frame(function: str, line: int = 1, *, file: str = "lib.py", code: str = "") -> Frame:
    return Frame(file=file, line=line, function=function, code=code)


def stack(*frames: Frame) -> Stack:
    return Stack(frames=frames)


MODEL, LAYER = frame("Model.forward", 10), frame("Attention.forward", 20)
WRAPPER = frame("deco.<locals>.wrapper", 5, code="return func(self, *args, **kwargs)")


def found(baseline: list[Stack], candidate: list[Stack]) -> Deviation:
    deviation = find_deviation(baseline, candidate)
    assert isinstance(deviation, Deviation)
    return deviation


def test_one_line_that_calls_different_functions_is_a_dispatch() -> None:
    eager, fused = frame("eager", 3), frame("fused", 7)
    deviation = found([stack(MODEL, LAYER, eager)], [stack(MODEL, LAYER, fused)])
    assert deviation.function == "Attention.forward"
    assert deviation.is_dispatch
    assert deviation.baseline_calls == (eager,)
    assert deviation.candidate_calls == (fused,)
    assert deviation.common == (MODEL, LAYER)


def test_different_lines_of_one_function_are_a_branch() -> None:
    deviation = found([stack(MODEL, LAYER)], [stack(MODEL, replace(LAYER, line=22))])
    assert not deviation.is_dispatch
    assert (deviation.baseline_line, deviation.candidate_line) == (20, 22)
    assert deviation.baseline_calls == ()


def test_a_line_that_runs_the_operator_itself_deviates_from_one_that_calls() -> None:
    fused = frame("fused", 7)
    deviation = found([stack(MODEL, LAYER)], [stack(MODEL, LAYER, fused)])
    assert deviation.is_dispatch
    assert (deviation.baseline_calls, deviation.candidate_calls) == ((), (fused,))


def test_the_deepest_agreement_counts_and_equal_stacks_do_not() -> None:
    same = stack(MODEL, LAYER, frame("view", 1), frame("deep", 2))
    baseline = [same, stack(MODEL, frame("norm", 4)), stack(MODEL, LAYER, frame("eager", 3))]
    candidate = [same, stack(MODEL, frame("other", 4)), stack(MODEL, LAYER, frame("fused", 7))]
    assert found(baseline, candidate).function == "Attention.forward"


def test_among_equally_deep_places_that_of_most_pairs_counts() -> None:
    baseline = [stack(MODEL, frame("Rare.forward", 1), frame("x")), stack(MODEL, LAYER, frame("eager", 3))]
    baseline.append(stack(MODEL, LAYER, frame("eager", 4)))
    candidate = [stack(MODEL, frame("Rare.forward", 1), frame("y")), stack(MODEL, LAYER, frame("fused", 7))]
    assert found(baseline, candidate).function == "Attention.forward"


def test_wrappers_are_passed_over_on_one_side_and_on_both() -> None:
    eager, fused = frame("eager", 3), frame("fused", 7)
    one_sided = found([stack(WRAPPER, MODEL, WRAPPER, LAYER, eager)], [stack(MODEL, LAYER, fused)])
    assert (one_sided.function, one_sided.common) == ("Attention.forward", (MODEL, LAYER))
    within = found([stack(MODEL, LAYER, WRAPPER, eager)], [stack(MODEL, LAYER, WRAPPER, fused)])
    assert (within.function, within.baseline_calls) == ("Attention.forward", (WRAPPER, eager))


def test_a_branch_within_a_wrapper_is_found() -> None:
    deviation = found([stack(MODEL, WRAPPER)], [stack(MODEL, replace(WRAPPER, line=9))])
    assert deviation.function == WRAPPER.function


def test_users_scripts_may_differ_outside_the_common_function() -> None:
    mine, yours = frame("main", 1, file="mine.py"), frame("run", 1, file="yours.py")
    deviation = found([stack(mine, LAYER, frame("eager"))], [stack(yours, yours, LAYER, frame("fused"))])
    assert deviation.function == "Attention.forward"


def test_there_is_a_reason_for_no_deviation() -> None:
    there = [stack(LAYER)]
    assert find_deviation([], there) == NoDeviation(reason="no Python stack on the baseline's side")
    assert find_deviation(there, [stack()]) == NoDeviation(reason="no Python stack on the candidate's side")
    elsewhere = [stack(frame("other", file="other.py"))]
    assert find_deviation(there, elsewhere) == NoDeviation(reason="different programs: no common function")
    assert find_deviation(there, there) == NoDeviation(reason="both sides run the same lines")


def test_repeated_layers_share_their_stacks() -> None:
    operators = tuple(an_operator(k, stack_id=StackId(k % 2)) for k in range(6))
    profile = replace(small_profile(), operators=operators, stacks=(stack(MODEL), stack(LAYER)))
    assert stacks_of(profile, [OpId(k) for k in (1, 2, 3, 4)]) == (stack(LAYER), stack(MODEL))


FRAMES = st.builds(
    frame,
    st.sampled_from(["f", "g", "deco.<locals>.wrapper"]),
    st.integers(1, 3),
    code=st.sampled_from(["", "return f(*args, **kwargs)"]),
)
SIDES = st.lists(st.lists(FRAMES, max_size=5).map(lambda frames: stack(*frames)), max_size=4)


@given(SIDES, SIDES)
def test_a_deviation_is_in_both_sides_and_turns_with_them(
    baseline: list[Stack], candidate: list[Stack]
) -> None:
    one, other = find_deviation(baseline, candidate), find_deviation(candidate, baseline)
    assert isinstance(one, Deviation) == isinstance(other, Deviation)
    if isinstance(one, Deviation):
        for side, line in ((baseline, one.baseline_line), (candidate, one.candidate_line)):
            assert any(
                (each.function, each.line) == (one.function, line)
                for frames in side
                for each in frames.frames
            )
