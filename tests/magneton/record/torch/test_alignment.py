"""Which of the profiler's calls are traced operators, also where the two lists differ."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from magneton.record.torch.alignment import align, call_name

Tree = tuple[str, list[Any]]


def laid_out(trees: Sequence[Tree]) -> tuple[list[str], list[int]]:
    """Calls in order and where what is inside each ends, from nested (name, inside) pairs."""
    names: list[str] = []
    ends: list[int] = []
    for name, inside in trees:
        place = len(names)
        names.append(name)
        ends.append(0)
        inner_names, inner_ends = laid_out(inside)
        names += inner_names
        ends += [place + 1 + end for end in inner_ends]
        ends[place] = len(names)
    return names, ends


def aligned(operators: Sequence[str], trees: Sequence[Tree]) -> list[tuple[str, str]]:
    names, ends = laid_out(trees)
    return [(operators[place], names[call]) for place, call in align(operators, names, ends)]


LINEAR: Tree = (
    "aten::linear",
    [("aten::t", [("aten::transpose", [("aten::as_strided", [])])]), ("aten::addmm", [("aten::copy_", [])])],
)


def test_names_lose_the_overload():
    assert call_name("aten.addmm.default") == "aten::addmm"
    assert call_name("aten._to_copy.default") == "aten::_to_copy"
    assert call_name("_C.rms_norm.default") == "_C::rms_norm"


def test_composites_are_opened_and_operators_are_taken_whole():
    operators = ["aten.t.default", "aten.addmm.default", "aten.copy_.default"]
    pairs = aligned(operators, [LINEAR, ("aten::copy_", [])])
    names, ends = laid_out([LINEAR, ("aten::copy_", [])])
    assert pairs == [
        ("aten.t.default", "aten::t"),
        ("aten.addmm.default", "aten::addmm"),
        ("aten.copy_.default", "aten::copy_"),
    ]
    assert align(operators, names, ends)[-1][1] == len(names) - 1  # not the copy inside addmm


def test_a_composite_that_was_traced_whole_is_taken_whole():
    assert aligned(["aten.linear.default", "aten.mul.Tensor"], [LINEAR, ("aten::mul", [])]) == [
        ("aten.linear.default", "aten::linear"),
        ("aten.mul.Tensor", "aten::mul"),
    ]


def test_an_operator_missing_in_the_timeline_is_given_up():
    operators = ["aten.mul.Tensor", "aten.detach.default", "aten.add.Tensor", "aten.neg.default"]
    timeline: list[Tree] = [("aten::mul", []), ("aten::add", []), ("aten::neg", [])]
    assert [operator for operator, _ in aligned(operators, timeline)] == [
        "aten.mul.Tensor",
        "aten.add.Tensor",
        "aten.neg.default",
    ]


def test_a_missing_operator_whose_name_comes_again_does_not_shift_the_rest():
    layer = ["aten.view.default", "aten.mm.default", "aten.add.Tensor", "aten.neg.default"]
    timeline: list[Tree] = [
        (name, [])
        for name in ["aten::mm", "aten::add", "aten::neg"]
        + 2 * ["aten::view", "aten::mm", "aten::add", "aten::neg"]
    ]
    names, ends = laid_out(timeline)
    assert align(3 * layer, names, ends) == tuple((call + 1, call) for call in range(11))


def test_a_call_that_was_not_traced_is_passed_over():
    operators = ["aten.mul.Tensor", "aten.add.Tensor", "aten.mul.Tensor"]
    timeline: list[Tree] = [("aten::mul", []), ("aten::mul", []), ("aten::add", []), ("aten::mul", [])]
    assert aligned(operators, timeline) == [
        ("aten.mul.Tensor", "aten::mul"),
        ("aten.add.Tensor", "aten::add"),
        ("aten.mul.Tensor", "aten::mul"),
    ]


def test_nothing_in_common_gives_no_pairs():
    assert align(["aten.mul.Tensor"], ["aten::add"], [1]) == ()
    assert align([], ["aten::add"], [1]) == ()
    assert align(["aten.mul.Tensor"], [], []) == ()


NAMES = st.sampled_from(["t", "view", "mm", "add", "mul", "copy_", "neg"])


def leaf(name: str) -> Tree:
    return f"aten::{name}", []


TREES = st.lists(
    st.recursive(
        NAMES.map(leaf),
        lambda inside: st.tuples(NAMES.map(lambda name: f"aten::{name}"), st.lists(inside, max_size=3)),
        max_leaves=6,
    ),
    max_size=12,
)


@given(st.lists(NAMES, max_size=25), TREES)
def test_pairs_ascend_agree_in_name_and_do_not_nest(operators: list[str], trees: list[Tree]):
    names, ends = laid_out(trees)
    traced = [f"aten.{name}.default" for name in operators]
    free_operator, free_call = 0, 0
    for place, call in align(traced, names, ends):
        assert place >= free_operator and call >= free_call
        assert call_name(traced[place]) == names[call]
        free_operator, free_call = place + 1, ends[call]


@given(TREES)
def test_what_was_traced_at_the_top_is_found_at_the_top(trees: list[Tree]):
    names, ends = laid_out(trees)
    top = [name for name, _ in trees]
    pairs = align([f"aten.{name.removeprefix('aten::')}.default" for name in top], names, ends)
    assert [place for place, _ in pairs] == list(range(len(top)))
    assert all(ends[call] > call for _, call in pairs)
