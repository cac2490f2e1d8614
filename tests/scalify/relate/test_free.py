"""Inputs that hold nothing of the baseline: when they are taken for that, and what is proved then."""

import pytest
from related import mesh_of, taking

import scalify
from scalify.errors import InvalidRelations
from scalify.ir.build import GraphBuilder
from scalify.ir.graph import Graph
from scalify.relate.model import Relations
from scalify.relate.relate import relate
from scalify.relate.stated import parse_stated
from scalify.verdict import Proved

ONLY_W = taking({"w": (4,)})
WITH_SCRATCH = taking({"w": (4,), "scratch": (4,)}, mesh_of(tp=2))


def free_names(relations: Relations, candidate: Graph) -> list[str]:
    names = {node.id: str(node.attrs["name"]) for node in candidate.inputs()}
    return [names[node] for node in relations.free]


def noted(relations: Relations, name: str) -> str:
    (note,) = (note for note in relations.notes if note.endswith(f"({name})"))
    return note


def test_what_is_left_over_is_free_where_all_of_the_baseline_is_known_by_name() -> None:
    relations = relate(ONLY_W, WITH_SCRATCH)
    assert free_names(relations, WITH_SCRATCH) == ["scratch"]
    assert noted(relations, "scratch").startswith("no input is left in the baseline that they could hold")


def test_what_is_left_over_is_undecided_where_the_baseline_leaves_something() -> None:
    candidate = taking({"w": (4,), "scratch": (4,), "other": (4,)})
    relations = relate(taking({"w": (4,), "weight": (4,)}), candidate)
    assert relations.free == ()
    assert relations.undecided["input scratch"].endswith("inputs left in the baseline: weight")


def test_whole_numbers_that_are_left_are_not_what_a_weight_holds() -> None:
    candidate = taking({"w": (4,), "scratch": (4,), "other": (4,)})
    build = GraphBuilder("baseline")
    build.output("out.w", build.add("neg", build.input("w", "f32", (4,), role="parameter")))
    build.input("ids", "i64", (4,), role="buffer")
    relations = relate(build.graph(), candidate)
    assert free_names(relations, candidate) == ["scratch", "other"]


def test_nothing_is_free_that_a_guess_may_have_mistaken() -> None:
    """``a`` was paired with ``p`` because nothing else was left, and is no more it than ``q``."""
    build = GraphBuilder("candidate")
    for name, role in (("p", "input"), ("q", "input"), ("w", "parameter")):
        build.output(f"out.{name}", build.add("neg", build.input(name, "f32", (4,), role=role)))
    baseline = GraphBuilder("baseline")
    for name, role in (("a", "input"), ("w", "parameter")):
        baseline.output(f"out.{name}", baseline.add("neg", baseline.input(name, "f32", (4,), role=role)))
    assert relate(baseline.graph(), build.graph()).free == ()


def test_what_nothing_uses_is_free_whatever_the_baseline_leaves() -> None:
    build = GraphBuilder("candidate")
    for name in ("unused", "unread"):
        build.input(name, "f32", (4,), role="parameter")
    build.output("out.w", build.add("neg", build.input("w", "f32", (4,), role="parameter")))
    candidate = build.graph()
    relations = relate(taking({"w": (4,), "weight": (4,)}), candidate)
    assert free_names(relations, candidate) == ["unused", "unread"]
    assert "used by nothing: any values (unused, unread)" in relations.notes


def test_it_can_be_stated() -> None:
    baseline = taking({"w": (4,), "weight": (4,)})
    relations = relate(baseline, WITH_SCRATCH, parse_stated("[inputs.scratch]\nfree = true"))
    assert free_names(relations, WITH_SCRATCH) == ["scratch"]
    assert noted(relations, "scratch").startswith("stated to hold nothing of the baseline")
    assert "input scratch" not in relations.undecided


@pytest.mark.parametrize("table", ["free = false", "free = true\nreplicated = true", "free = 1"])
def test_what_else_is_said_of_free_is_refused(table: str) -> None:
    with pytest.raises(InvalidRelations, match="free is true or left out"):
        parse_stated(f"[inputs.scratch]\n{table}")


def test_only_inputs_there_are_can_be_free() -> None:
    with pytest.raises(InvalidRelations, match="'scratsh' is not known"):
        relate(ONLY_W, WITH_SCRATCH, parse_stated("[inputs.scratsh]\nfree = true"))


def adding(*, scratch: str) -> Graph:
    """w + w on two ranks, with something unknown beside it: ``unread``, ``cancelled`` or ``added``."""
    build = GraphBuilder("adding", mesh=mesh_of(tp=2))
    w, unknown = (build.input(name, "f32", (4,), role="parameter") for name in ("w", "unknown"))
    total = build.add("add", w, w)
    if scratch != "unread":
        total = build.add("add", total, unknown)
    if scratch == "cancelled":
        total = build.add("sub", total, unknown)
    if scratch == "summed":
        total = build.add("sub", total, build.add("all_reduce", unknown, groups=((0, 1),)))
    build.output("y", total)
    return build.graph()


def doubled() -> Graph:
    build = GraphBuilder("doubled")
    w = build.input("w", "f32", (4,), role="parameter")
    build.output("y", build.add("add", w, w))
    return build.graph()


@pytest.mark.parametrize(
    ("scratch", "right"), [("unread", True), ("cancelled", True), ("added", False), ("summed", False)]
)
def test_what_is_proved_holds_whatever_a_free_input_is(scratch: str, right: bool) -> None:
    verdict = scalify.verify(doubled(), adding(scratch=scratch))
    assert isinstance(verdict, Proved) == right


def test_two_free_inputs_are_not_the_same() -> None:
    build = GraphBuilder("candidate")
    w, one, other = (build.input(name, "f32", (4,), role="parameter") for name in ("w", "one", "other"))
    build.output("y", build.add("add", build.add("add", w, w), build.add("sub", one, other)))
    assert not isinstance(scalify.verify(doubled(), build.graph()), Proved)


def tied(names: tuple[str, str]) -> Graph:
    build = GraphBuilder("tied")
    first = build.input(names[0], "f32", (4,), role="parameter")
    second = build.input(names[1], "f32", (4,), role="parameter") if names[1] != names[0] else first
    build.output("y", build.add("add", first, second))
    return build.graph()


def test_several_inputs_may_hold_the_whole_of_one_and_one_of_them_under_its_own_name() -> None:
    stated = parse_stated('[inputs.head]\nbaseline = "w"')
    relations = relate(doubled(), tied(("w", "head")), stated)
    assert [relation.of for relation in relations.inputs] == [("w",), ("w",)]
    assert relations.free == ()


def test_copies_are_said() -> None:
    stated = parse_stated('[inputs.head]\nbaseline = "w"\n[inputs.embedding]\nbaseline = "w"')
    relations = relate(doubled(), tied(("embedding", "head")), stated)
    assert "each of several inputs holds the whole of the baseline's w (head, embedding)" in relations.notes
