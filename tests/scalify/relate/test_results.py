"""Outputs: which make up which, in which layouts; swapped ones and other alias tables are said to be so."""

from dataclasses import replace

import numpy as np
import pytest
from related import mesh_of, numbered, read_through, shards, taking

from scalify.ir.build import GraphBuilder
from scalify.ir.graph import Graph
from scalify.ir.mesh import SINGLE, Mesh
from scalify.layout.maps import Shape, identity
from scalify.relate.relate import relate
from scalify.relate.stated import parse_stated


def giving(mesh: Mesh = SINGLE, /, **results: Shape) -> Graph:
    return taking({}, mesh, results=results)


def choices(baseline: Graph, candidate: Graph) -> list[list[str]]:
    relations = relate(baseline, candidate)
    assert not relations.undecided
    return [[name for name, _ in output.choices] for output in relations.outputs]


def test_every_layout_that_fits_is_a_choice() -> None:
    found = choices(giving(y=(8, 4), z=(8, 4)), giving(mesh_of(dp=2, tp=2), y=(4, 4), z=(8, 4)))
    assert found == [["dimension 0 sharded over dp", "dimension 0 sharded over tp"], ["replicated"]]


def test_a_gradient_lies_like_what_it_is_the_gradient_of() -> None:
    def with_gradient(mesh: Mesh, rows: int, columns: int) -> Graph:
        shape = (rows, columns)
        return taking(
            {"w": shape, "v": (8, 4)}, mesh, results={"grad.w": shape, "grad.v": (8, 4), "w": shape}
        )

    stated = parse_stated('[inputs.w]\nshard = { dim = 0, axes = ["tp"] }\n')
    mesh = mesh_of(dp=2, tp=2)
    relations = relate(with_gradient(SINGLE, 8, 4), with_gradient(mesh, 4, 4), stated)
    assert [[name for name, _ in output.choices] for output in relations.outputs] == [
        ["dimension 0 sharded over tp"],
        ["replicated"],
        ["dimension 0 sharded over dp", "dimension 0 sharded over tp"],
    ]


def test_two_dimensions_are_cut_over_either_axis_each() -> None:
    mesh = mesh_of(dp=2, tp=2)
    (relation,) = relate(giving(y=(4, 4)), giving(mesh, y=(2, 2))).outputs
    whole = numbered((4, 4))
    read = [read_through(index, whole[None]) for _, index in relation.choices]
    assert len(read) == 2
    for cut, values in zip(({0: ("dp",), 1: ("tp",)}, {0: ("tp",), 1: ("dp",)}), read, strict=True):
        assert np.array_equal(values, shards(whole, mesh, cut))


def test_outputs_pair_by_name_where_all_agree_else_in_order() -> None:
    def named(baseline: dict[str, Shape], candidate: dict[str, Shape]) -> list[tuple[str, str]]:
        relations = relate(giving(**baseline), giving(**candidate))
        return [(output.baseline, output.candidate) for output in relations.outputs]

    shape = (2,)
    assert named({"a": shape, "b": shape}, {"b": shape, "a": shape}) == [("b", "b"), ("a", "a")]
    assert named({"a": shape, "b": shape}, {"b": shape, "c": shape}) == [("a", "b"), ("b", "c")]


def test_other_numbers_of_outputs_are_undecided() -> None:
    relations = relate(giving(y=(2,)), giving(y=(2,), z=(2,)))
    assert relations.undecided == {"outputs": "the baseline gives 1, the candidate 2"}


def test_swapped_outputs_are_suspected_where_the_other_order_fits() -> None:
    relations = relate(giving(a=(4, 2), b=(3,)), giving(x=(3,), y=(4, 2)))
    assert set(relations.undecided) == {"output x", "output y"}
    assert all("are outputs swapped?" in why for why in relations.undecided.values())


def test_outputs_that_fit_in_no_order_are_not_called_swapped() -> None:
    relations = relate(giving(a=(4, 2), b=(3,)), giving(x=(5,), y=(4, 2)))
    assert "output x" in relations.undecided
    assert "swapped" not in "".join(relations.undecided.values())


def test_a_shape_that_fits_nothing_is_said_with_what_would() -> None:
    relations = relate(giving(y=(12,)), giving(mesh_of(tp=4), y=(5,)))
    said = "the baseline holds [12], every rank [5] of 4 (tp 4): dimension 0 would fit with 3 or 12 elements"
    assert relations.undecided == {"output y": said}
    assert relations.outputs == ()


def test_an_output_of_another_kind_is_undecided() -> None:
    build = GraphBuilder("ids")
    build.output("y", build.constant(0, "i64", (2,)))
    relations = relate(giving(y=(2,)), build.graph())
    assert relations.undecided == {"output y": "the baseline's y is f32, this is i64"}


def test_outputs_of_two_programs_on_the_same_ranks_are_the_same_on_each() -> None:
    mesh = mesh_of(tp=2)
    (relation,) = relate(giving(mesh, y=(4,)), giving(mesh, y=(4,))).outputs
    assert relation.choices == (("the same on each rank", identity((2, 4))),)
    undecided = relate(giving(mesh, y=(4,)), giving(mesh, y=(2,))).undecided
    assert "shapes differ" in undecided["output y"]


def caching(*aliases: str | None, names: tuple[str, str] = ("k", "v")) -> Graph:
    build = GraphBuilder("caching")
    caches = {name: build.input(name, "f32", (4,)) for name in names}
    graph = build.graph()
    for number, (alias, value) in enumerate(zip(aliases, caches.values(), strict=True)):
        build.output(f"out{number}", value, alias=alias)
    return replace(graph, outputs=build.graph().outputs)


def test_equal_alias_tables_are_fine_whatever_the_inputs_are_called() -> None:
    relations = relate(caching("k", "v"), caching("key", "value", names=("key", "value")))
    assert not relations.undecided


def test_swapped_caches_are_undecided_with_a_message_of_their_own() -> None:
    relations = relate(caching("k", "v"), caching("v", "k"))
    assert relations.undecided == {
        "output out0": "takes over the buffer of v, the baseline's out0 that of k",
        "output out1": "takes over the buffer of k, the baseline's out1 that of v",
    }


@pytest.mark.parametrize(("baseline", "candidate"), [(("k", "v"), ("k", None)), ((None, "v"), ("k", "v"))])
def test_a_missing_alias_is_undecided(
    baseline: tuple[str | None, str | None], candidate: tuple[str | None, str | None]
) -> None:
    undecided = relate(caching(*baseline), caching(*candidate)).undecided
    assert len(undecided) == 1
    assert "no input" in next(iter(undecided.values()))


def test_programs_of_which_one_tells_no_aliases_are_not_compared_and_this_is_noted() -> None:
    relations = relate(caching("k", "v"), caching(None, None))
    assert not relations.undecided
    assert relations.notes == (
        "which inputs the outputs take over is not compared: the candidate does not say",
    )
