"""Pairing: by name, by name without wrappers and prefixes, by place; never by shape."""

from collections.abc import Sequence

import pytest
from related import mesh_of, taking

from scalify.ir.build import GraphBuilder
from scalify.ir.graph import Node
from scalify.relate.pairing import name_of, pair


def nodes(*names: str, role: str = "parameter") -> tuple[Node, ...]:
    return taking(dict.fromkeys(names, (4,)), role=role).inputs()


def placed(*places: tuple[str, int]) -> tuple[Node, ...]:
    build = GraphBuilder("placed")
    for name, place in places:
        build.input(name, "f32", (4,), position=place)
    return build.graph().inputs()


def pairs(baseline: Sequence[Node], candidate: Sequence[Node]) -> dict[str, str]:
    return {name_of(other): name_of(one) for one, other in pair(baseline, candidate).pairs}


def test_equal_names_pair_in_any_order() -> None:
    assert pairs(nodes("wq", "wk", "x"), nodes("x", "wk", "wq")) == {"x": "x", "wk": "wk", "wq": "wq"}


def test_shapes_never_pair() -> None:
    baseline = taking({"gate": (8, 2), "o": (4, 2)}).inputs()
    candidate = taking({"o": (8, 2), "gate": (4, 2)}, mesh_of(tp=2)).inputs()
    assert pairs(baseline, candidate) == {"o": "o", "gate": "gate"}


@pytest.mark.parametrize("prefix", ["model.", "module.", "_orig_mod.", "module.model."])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_prefix_that_all_share_is_left_out(prefix: str, swapped: bool) -> None:
    plain, prefixed = ("layers.0.w", "norm.w"), (f"{prefix}norm.w", f"{prefix}layers.0.w")
    expected = dict(zip(reversed(prefixed), plain, strict=True))
    if swapped:
        expected = {name: longer for longer, name in expected.items()}
        assert pairs(nodes(*prefixed), nodes(*plain)) == expected
    else:
        assert pairs(nodes(*plain), nodes(*prefixed)) == expected


def test_a_prefix_is_noted() -> None:
    (note,) = pair(nodes("w.a", "w.b"), nodes("model.w.b", "model.w.a")).notes
    assert "'model.'" in note


def test_inputs_keep_their_names_where_parameters_have_a_prefix() -> None:
    def both(prefix: str) -> tuple[Node, ...]:
        build = GraphBuilder("both")
        for name in (f"{prefix}b.w", f"{prefix}a.w") if prefix else ("a.w", "b.w"):
            build.input(name, "f32", (4,), role="parameter")
        build.input("tokens", "i64", (2,))
        return build.graph().inputs()

    assert pairs(both(""), both("model.")) == {"tokens": "tokens", "model.a.w": "a.w", "model.b.w": "b.w"}


def test_names_with_several_prefixes_are_not_guessed_by_name() -> None:
    for baseline in (("weight",), ("weight", "other")):
        pairing = pair(nodes(*baseline), nodes("q.weight", "k.weight", "v.weight"))
        assert not pairing.pairs
        assert len(pairing.candidate) == 3
        assert len(pairing.baseline) == len(baseline)


def test_segments_that_wrappers_insert_are_left_out() -> None:
    pairing = pair(
        nodes("a.b.w", "c.w"), nodes("c._fsdp_wrapped_module.w", "a._checkpoint_wrapped_module.b.w")
    )
    assert {name_of(other): name_of(one) for one, other in pairing.pairs} == {
        "c._fsdp_wrapped_module.w": "c.w",
        "a._checkpoint_wrapped_module.b.w": "a.b.w",
    }
    assert pairing.notes


def test_counted_names_pair_by_position_even_where_names_agree() -> None:
    baseline = placed(("arg0", 0), ("arg1", 1), ("arg2", 2))
    candidate = placed(("arg1", 0), ("arg2", 1), ("arg0", 2))
    assert pairs(baseline, candidate) == {"arg1": "arg0", "arg2": "arg1", "arg0": "arg2"}


@pytest.mark.parametrize("name", ["p3.4", "param.3", "arg3_1", "Arg_3.7", "primals_3", "input.3", "3"])
def test_names_that_only_count_are_recognised(name: str) -> None:
    pairing = pair(placed((name, 0)), placed((name, 0)))
    assert pairing.notes == ["inputs without names of their own are paired by position"]


def test_counted_names_without_positions_are_names() -> None:
    build = GraphBuilder("by hand")
    for name in ("arg1", "arg0", "arg2"):
        build.input(name, "f32", (4,))
    assert pairs(build.graph().inputs(), nodes("arg0", "arg1")) == {"arg0": "arg0", "arg1": "arg1"}


def test_counted_names_of_other_number_are_not_paired() -> None:
    pairing = pair(placed(("p0.1", 0), ("p1.2", 1)), placed(("p0.1", 0)))
    assert not pairing.pairs
    assert [name_of(node) for node in pairing.candidate] == ["p0.1"]


def test_what_is_left_over_pairs_in_the_order_of_positions_and_is_noted() -> None:
    pairing = pair(placed(("w", 0), ("y", 2), ("x", 1)), placed(("b", 2), ("a", 1), ("w", 0)))
    assert {name_of(other): name_of(one) for one, other in pairing.pairs} == {"w": "w", "a": "x", "b": "y"}
    assert pairing.notes == ["names do not tell: paired in order x with a, y with b"]


def test_what_is_left_over_pairs_within_roles_only() -> None:
    build = GraphBuilder("roles")
    build.input("tokens", "f32", (4,))
    build.input("w", "f32", (4,), role="parameter")
    other = GraphBuilder("roles")
    other.input("weight", "f32", (4,), role="parameter")
    other.input("ids", "f32", (4,))
    assert pairs(build.graph().inputs(), other.graph().inputs()) == {"ids": "tokens", "weight": "w"}


def test_what_is_left_over_stays_where_numbers_differ() -> None:
    pairing = pair(nodes("a", "b", "c"), nodes("c", "d"))
    assert [name_of(node) for node in pairing.candidate] == ["d"]
    assert [name_of(node) for node in pairing.baseline] == ["a", "b"]


def test_no_inputs_pair() -> None:
    pairing = pair((), ())
    assert not pairing.pairs
    assert not pairing.notes
