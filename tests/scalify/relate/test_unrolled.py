"""What is inferred of ranks that stand side by side, and what is not."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from related import cutting, held, mesh_of, numbered, taking, window
from uneven import on_one, side_by_side, uneven_mlp, whole_mlp

from scalify.errors import InvalidRelations
from scalify.ir.build import GraphBuilder
from scalify.ir.graph import DType, Graph
from scalify.layout.maps import Shape
from scalify.load.unroll import unroll
from scalify.relate.model import Relations
from scalify.relate.relate import relate
from scalify.relate.shares import Shares, ranks_text, shares, sizes_text, window_text
from scalify.relate.stated import parse_stated

Array = NDArray[Any]


def ranks_taking(
    shapes: Sequence[Mapping[str, Shape]],
    *,
    role: str = "parameter",
    dtype: DType = "f32",
    results: Sequence[Mapping[str, Shape]] | None = None,
) -> Graph:
    """Ranks that take inputs of these shapes each, side by side."""
    graphs = {
        rank: taking(taken, role=role, dtype=dtype, results=results[rank] if results else None)
        for rank, taken in enumerate(shapes)
    }
    return unroll(graphs, mesh_of(tp=len(shapes)))


def related_to(whole: Shape, shapes: Sequence[Shape]) -> Relations:
    """One parameter of the baseline, and what the ranks hold of it."""
    return relate(taking({"w": whole}), ranks_taking([{"w": shape} for shape in shapes]))


def test_windows_lie_in_rank_order():
    relations = relate(whole_mlp(), side_by_side(4, uneven_mlp))

    assert not relations.undecided
    texts = {relation.name: relation.text for relation in relations.inputs}
    assert texts["x@rank2"] == "replicated"
    assert texts["up@rank2"] == "dimension 1 in parts 3, 3, 3, 1 over ranks 0-3"
    assert texts["down@rank3"] == "dimension 0 in parts 3, 3, 3, 1 over ranks 0-3"
    assert [relation.name for relation in relations.inputs[:4]] == [
        "x@rank0",
        "up@rank0",
        "down@rank0",
        "x@rank1",
    ]
    assert {relation.of for relation in relations.inputs} == {("x",), ("up",), ("down",)}
    assert relations.notes == (
        "the programs of the 4 ranks differ: they are taken side by side",
        "equal shapes are taken as the same values on every rank (x)",
        "ranks hold windows in their own order (up, down)",
    )


@given(st.lists(st.integers(1, 4), min_size=2, max_size=6), st.integers(0, 2))
def test_each_rank_holds_its_window(sizes: list[int], dim: int):
    def sized(size: int) -> Shape:
        return tuple(size if d == dim else 3 for d in range(3))

    baseline = taking({"w": sized(sum(sizes))})
    candidate = ranks_taking([{"w": sized(size)} for size in sizes])
    relations = relate(baseline, candidate)
    if all(size == sum(sizes) for size in sizes):
        return

    whole = numbered(sized(sum(sizes)))
    windows = np.split(whole, np.cumsum(sizes)[:-1], axis=dim)
    for relation, expected in zip(relations.inputs, windows, strict=True):
        np.testing.assert_array_equal(window_of(relations, relation.name, whole), expected)


def window_of(relations: Relations, name: str, whole: Array) -> Array:
    """What a rank's input is of the baseline's, as the relation says."""
    (relation,) = (one for one in relations.inputs if one.name == name)
    return held(relation, {part.baseline: whole for part in relation.parts})[0]


@pytest.mark.parametrize(
    ("whole", "shapes", "why"),
    [
        ((10,), [(5,), (5,), (5,), (5,)], "dimension 0 2 times in all; state which rank holds what"),
        ((10,), [(3,), (3,), (3,), (2,)], "11 elements along dimension 0 in all are not 10"),
        ((4, 6), [(2, 6), (2, 6), (4, 3)], "dimensions [0, 1] differ; state what each rank holds"),
        ((4, 6), [(4,), (4, 6)], "not the same number of dimensions"),
    ],
)
def test_what_shapes_do_not_tell_is_for_the_user_to_state(whole: Shape, shapes: list[Shape], why: str):
    relations = related_to(whole, shapes)
    assert not relations.inputs
    assert relations.undecided["input w"].endswith(why)


def test_only_the_ranks_that_hold_an_input_count():
    """As stages do."""
    baseline = taking({"first": (4,), "second": (6,)})
    candidate = ranks_taking(
        [{"first": (4,)}, {"second": (2,)}, {"second": (4,)}],
        results=[{}, {"out.first": (4,), "out.second": (2,)}, {"out.second": (4,)}],
    )
    relations = relate(baseline, candidate)

    assert not relations.undecided
    assert [relation.text for relation in relations.inputs] == [
        "replicated",
        *["dimension 0 in parts 2, 4 over ranks 1-2"] * 2,
    ]
    assert [(output.candidate, output.choices[0][0]) for output in relations.outputs] == [
        ("out.first@rank1", "replicated"),
        ("out.second@rank1", "rows 0-1 of out.second"),
        ("out.second@rank2", "rows 2-5 of out.second"),
    ]


def fused(sizes: Sequence[int], parts: Sequence[int]) -> Relations:
    ends = np.cumsum(parts).tolist()
    baseline = cutting((ends[-1], 2), 0, list(zip([0, *ends], ends, strict=False)))
    results = {output.name: (1,) for output in baseline.outputs}
    candidate = ranks_taking([{"w": (size, 2)} for size in sizes], results=[results] * len(sizes))
    return relate(baseline, candidate)


def test_parts_that_the_baseline_cuts_each_lie_so():
    relations = fused((6, 6, 6, 2), (10, 10))

    assert relations.inputs[0].text == (
        "dimension 0 in parts 6, 6, 6, 2 over ranks 0-3, fused of 2 parts (10, 10), each so"
    )
    whole = numbered((20, 2))
    expected = [np.r_[whole[3 * r : 3 * r + 3], whole[10 + 3 * r : 13 + 3 * r]] for r in range(3)]
    expected.append(np.r_[whole[9:10], whole[19:20]])
    for rank, rows in enumerate(expected):
        np.testing.assert_array_equal(window_of(relations, f"w@rank{rank}", whole), rows)


def test_parts_that_cannot_lie_so_are_not_decided():
    assert (
        "in which parts [10, 4], as the baseline slices it, cannot lie"
        in fused((5, 9), (10, 4)).undecided["input w"]
    )


def test_parts_of_an_input_may_lie_so_or_not():
    """Where a program tells inputs from parameters: a batch is not fused."""

    def halved(build: GraphBuilder, rows: int) -> None:
        x = build.input("x", "f32", (rows, 2))
        build.input("w", "f32", (2,), role="parameter")
        half = rows // 2
        build.output("first", window(build, x, 0, 0, half))
        build.output("second", window(build, x, 0, half, rows))

    relations = relate(
        on_one(lambda build: halved(build, 14)),
        side_by_side(2, lambda rank, build: halved(build, 6 + 2 * rank)),
    )
    assert relations.undecided["input x"] == (
        "dimension 0 in parts 6, 8 over ranks 0-1, or part by part, as the baseline slices it in [7, 7]"
    )


def test_slices_with_gaps_are_not_decided():
    baseline = cutting((10, 2), 0, [(0, 3), (5, 10)])
    results = {output.name: (1,) for output in baseline.outputs}
    candidate = ranks_taking([{"w": (6, 2)}, {"w": (4, 2)}], results=[results] * 2)
    assert "do not lie side by side" in relate(baseline, candidate).undecided["input w"]


def test_outputs_are_windows_or_wholes_and_not_both():
    baseline = taking({"x": (5,)}, results={"y": (5, 2)})

    def of(*shapes: Shape) -> Relations:
        return relate(baseline, ranks_taking([{"x": (5,)}] * len(shapes), results=[{"y": s} for s in shapes]))

    windows = of((3, 2), (1, 2), (1, 2))
    assert [output.choices[0][0] for output in windows.outputs] == [
        "rows 0-2 of y",
        "row 3 of y",
        "row 4 of y",
    ]
    assert {output.baseline for output in windows.outputs} == {"y"}
    assert [output.choices[0][0] for output in of((5, 2), (5, 2)).outputs] == ["replicated"] * 2
    assert of((5, 1), (5, 1)).outputs[1].choices[0][0] == "1 of dimension 1 of y"
    assert "output y" in of((5, 2), (3, 2)).undecided
    assert "output y" in of((3, 2), (3, 2)).undecided


def test_other_kinds_of_elements_are_not_decided():
    relations = relate(
        taking({"w": (4,)}), ranks_taking([{"w": (2,)}] * 2, dtype="i64", results=[{"out.w": (2,)}] * 2)
    )
    assert "is f32, this is i64" in relations.undecided["input w"]


def test_other_precision_is_noted():
    relations = relate(taking({"w": (4,)}), ranks_taking([{"w": (3,)}, {"w": (1,)}], dtype="bf16"))
    assert "f32 in the baseline and bf16 are taken as the same values (w)" in relations.notes


def test_names_that_differ_by_a_prefix_are_paired():
    baseline = taking({"model.up": (4,), "model.down": (3,)}, results={"y": (1,)})
    taken = [{"up": (3,), "down": (3,)}, {"up": (1,), "down": (3,)}]
    relations = relate(baseline, ranks_taking(taken, results=[{"y": (1,)}] * 2))
    assert not relations.undecided
    assert {relation.of[0] for relation in relations.inputs} == {"model.up", "model.down"}


def test_an_input_without_a_counterpart_is_said_once():
    candidate = ranks_taking([{"w": (2,), "z": (1,)}] * 2)
    relations = relate(taking({"w": (4,), "p": (4,), "q": (4,)}), candidate)
    assert relations.undecided["input z"] == "no counterpart; inputs left in the baseline: p, q"
    assert sum(name.startswith("input") for name in relations.undecided) == 1


def test_an_input_that_holds_nothing_of_the_baseline_is_free_on_every_rank():
    candidate = ranks_taking([{"w": (2,), "z": (1,)}] * 2)
    relations = relate(taking({"w": (4,)}), candidate)
    named = {node.id: str(node.attrs["name"]) for node in candidate.inputs()}
    assert [named[node] for node in relations.free] == ["z@rank0", "z@rank1"]
    assert not any(name.startswith("input") for name in relations.undecided)


def test_outputs_that_are_fewer_are_said():
    relations = relate(
        taking({"w": (4,)}, results={"y": (1,), "z": (1,)}),
        ranks_taking([{"w": (4,)}] * 2, results=[{"y": (1,)}] * 2),
    )
    assert relations.undecided == {"outputs": "the baseline gives 2, the candidate 1"}


TWICE = """
[inputs."w@rank0"]
baseline = "w"
window = { dim = 0, start = 0, size = 5 }
[inputs."w@rank1"]
baseline = "w"
window = { dim = 0, start = 5, size = 5 }
[inputs."w@rank2"]
baseline = "w"
window = { dim = 0, start = 0, size = 5 }
[inputs."w@rank3"]
baseline = "w"
window = { dim = 0, start = 5, size = 5 }
"""


def test_what_each_rank_holds_can_be_stated():
    """Also copies: two ranks hold one half, two the other."""
    baseline = taking({"w": (10,)}, results={"y": (1,)})
    candidate = ranks_taking([{"w": (5,)}] * 4, results=[{"y": (1,)}] * 4)
    assert "2 times in all" in relate(baseline, candidate).undecided["input w"]

    relations = relate(baseline, candidate, parse_stated(TWICE))
    assert not relations.undecided
    assert [relation.text for relation in relations.inputs][1:3] == [
        "5:10 of dimension 0, replicated",
        "0:5 of dimension 0, replicated",
    ]
    assert all(relation.stated for relation in relations.inputs)


def test_what_is_stated_of_some_ranks_only_is_refused():
    baseline = taking({"w": (10,)}, results={"y": (1,)})
    candidate = ranks_taking([{"w": (5,)}] * 4, results=[{"y": (1,)}] * 4)
    stated = parse_stated(TWICE)
    with pytest.raises(InvalidRelations, match="'w' is stated for some ranks only"):
        relate(baseline, candidate, replace(stated, inputs=stated.inputs[:3]))
    with pytest.raises(InvalidRelations, match="side by side, on no mesh"):
        relate(baseline, candidate, parse_stated("[mesh]\ntp = 4\n"))


def test_outputs_of_other_names_can_be_stated():
    baseline = taking({"w": (4,)}, results={"y": (2,), "z": (2,)})
    candidate = ranks_taking([{"w": (4,)}] * 2, results=[{"p": (2,), "q": (2,)}] * 2)

    def pairs(text: str) -> set[tuple[str, str]]:
        found = relate(baseline, candidate, parse_stated(text))
        return {(output.candidate, output.baseline) for output in found.outputs}

    assert ("p@rank1", "y") in pairs("")
    assert {("p@rank0", "z"), ("p@rank1", "z"), ("q@rank1", "y")} <= pairs(
        '[outputs."p@rank0"]\nbaseline = "z"\n'
    )
    with pytest.raises(InvalidRelations, match="output of the candidate 'p'"):
        pairs('[outputs.p]\nbaseline = "z"\n')
    with pytest.raises(InvalidRelations, match="output of the baseline"):
        pairs('[outputs."p@rank0"]\nbaseline = "w"\n')
    with pytest.raises(InvalidRelations, match="not laid out over axes"):
        pairs('[outputs."p@rank0"]\nbaseline = "y"\nshard = { dim = 0, axes = ["tp"] }\n')


def test_unrolled_graphs_of_one_kind_are_related_by_name():
    graph = side_by_side(4, uneven_mlp)
    relations = relate(graph, graph)
    assert not relations.undecided
    assert {relation.name for relation in relations.inputs} == {
        relation.of[0] for relation in relations.inputs
    }

    assert "mesh" in relate(graph, whole_mlp()).undecided
    assert (
        "mesh"
        in relate(graph, side_by_side(2, lambda rank, build: uneven_mlp(rank, build, (5, 5)))).undecided
    )


def test_a_baseline_of_many_ranks_is_not_related_to_them():
    assert (
        "mesh"
        in relate(taking({"w": (4,)}, mesh_of(tp=2)), ranks_taking([{"w": (3,)}, {"w": (1,)}])).undecided
    )


def test_buffers_that_are_taken_over_are_compared():
    def updating(name: str, build: GraphBuilder, rows: int) -> None:
        caches = {other: build.input(other, "f32", (rows,), role="buffer") for other in ("keys", "values")}
        for other, cache in caches.items():
            build.output(f"new.{other}", build.add("neg", cache), alias=name if other == "keys" else "values")

    baseline = on_one(lambda build: updating("keys", build, 4))
    assert not relate(baseline, side_by_side(2, lambda rank, b: updating("keys", b, 3 - 2 * rank))).undecided
    wrong = relate(baseline, side_by_side(2, lambda rank, b: updating("values", b, 3 - 2 * rank)))
    assert "takes over the buffer of values@rank0" in wrong.undecided["output new.keys@rank0"]


def test_words():
    assert sizes_text((3, 1)) == "3, 1"
    assert sizes_text((3,) * 9 + (1,)) == "3 (9 of them), 1"
    assert ranks_text((0, 2)) == "0, 2"
    assert ranks_text((3,)) == "3"
    assert window_text(1, 4, (2, 3), "y") == "4-6 of dimension 1 of y"
    assert shares((4,), [(4,)]) == Shares()
    assert "[3] (9 of them)" in str(shares((10,), [(3,)] * 9))
