"""Inference: the layout that was cut is found where shapes fix it, else it is left undecided."""

from dataclasses import replace
from math import prod
from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from related import cutting, held, mesh_of, numbered, shards, taking, text_of, window

from scalify.ir.build import GraphBuilder
from scalify.ir.graph import Graph, NodeId
from scalify.ir.mesh import Mesh
from scalify.layout.maps import Shape, identity
from scalify.relate.relate import relate

W = NodeId("w")


def why(baseline: Graph, candidate: Graph, name: str = "input w") -> str:
    relations = relate(baseline, candidate)
    assert name in relations.undecided, relations
    return relations.undecided[name]


def local(shape: Shape, dim: int, ranks: int) -> Shape:
    return tuple(size // ranks if d == dim else size for d, size in enumerate(shape))


@st.composite
def one_axis_shards(draw: st.DrawFn) -> tuple[Shape, int, int]:
    ranks = draw(st.sampled_from((2, 3, 4, 8)))
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    dim = draw(st.integers(0, len(shape) - 1))
    shape[dim] *= ranks
    return tuple(shape), dim, ranks


@given(one_axis_shards())
def test_a_shard_over_one_axis_is_found_and_reads_what_was_cut(case: tuple[Shape, int, int]) -> None:
    shape, dim, ranks = case
    mesh = mesh_of(tp=ranks)
    (relation,) = relate(taking({"w": shape}), taking({"w": local(shape, dim, ranks)}, mesh)).inputs
    assert relation.text == f"dimension {dim} sharded over tp"
    assert np.array_equal(held(relation, {W: numbered(shape)}), shards(numbered(shape), mesh, {dim: ("tp",)}))


@given(st.lists(st.integers(1, 5), max_size=4).map(tuple), st.sampled_from((1, 2, 6)))
def test_equal_shapes_are_replicated(shape: Shape, ranks: int) -> None:
    (relation,) = relate(taking({"w": shape}), taking({"w": shape}, mesh_of(tp=ranks))).inputs
    assert relation.text == "replicated"
    assert np.array_equal(held(relation, {W: numbered(shape)}), np.stack([numbered(shape)] * ranks))


@given(
    st.lists(st.integers(1, 3), min_size=2, max_size=5),
    st.sampled_from((2, 4)),
    st.integers(0, 1),
    st.booleans(),
)
def test_parts_that_the_baseline_slices_are_sharded_one_by_one(
    sizes: list[int], ranks: int, dim: int, plain: bool
) -> None:
    parts = [size * ranks for size in sizes]
    ends = np.cumsum(parts).tolist()
    shape = (sum(parts), 2) if dim == 0 else (2, sum(parts))
    windows = [(end - part, end) for end, part in zip(ends, parts, strict=True)]
    mesh = mesh_of(tp=ranks)
    baseline = taking({"w": shape}) if plain else cutting(shape, dim, windows)

    (relation,) = relate(baseline, taking({"w": local(shape, dim, ranks)}, mesh)).inputs

    whole = numbered(shape)
    pieces = [whole] if plain else np.split(whole, ends[:-1], axis=dim)
    expected = np.concatenate([shards(piece, mesh, {dim: ("tp",)}) for piece in pieces], axis=dim + 1)
    assert np.array_equal(held(relation, {W: whole}), expected)
    assert len(relation.parts) == (1 if plain else len(parts))


def test_fused_parts_are_said_and_noted() -> None:
    baseline = cutting((2, 12), 1, [(0, 8), (8, 10), (10, 12)])
    relations = relate(baseline, taking({"w": (2, 6)}, mesh_of(tp=2)))
    assert text_of(relations) == "dimension 1 fused of 3 parts (8, 2, 2), each sharded over tp"
    assert any("8, 2, 2" in note and note.endswith("(w)") for note in relations.notes)


def test_two_dimensions_over_two_axes() -> None:
    mesh = mesh_of(dp=2, tp=3)
    (relation,) = relate(taking({"w": (6, 4)}), taking({"w": (2, 2)}, mesh)).inputs
    assert relation.text == "dimension 0 sharded over tp, dimension 1 sharded over dp"
    expected = shards(numbered((6, 4)), mesh, {0: ("tp",), 1: ("dp",)})
    assert np.array_equal(held(relation, {W: numbered((6, 4))}), expected)


def test_a_fused_dimension_beside_a_sharded_one() -> None:
    mesh = mesh_of(fsdp=2, tp=3)
    baseline = cutting((4, 9), 1, [(0, 6), (6, 9)])
    (relation,) = relate(baseline, taking({"w": (2, 3)}, mesh)).inputs
    assert (
        relation.text
        == "dimension 1 fused of 2 parts (6, 3), each sharded over tp, dimension 0 sharded over fsdp"
    )
    whole = numbered((4, 9))
    pieces = [shards(part, mesh, {0: ("fsdp",), 1: ("tp",)}) for part in np.split(whole, [6], axis=1)]
    assert np.array_equal(held(relation, {W: whole}), np.concatenate(pieces, axis=2))


def test_the_whole_mesh_takes_all_axes() -> None:
    mesh = mesh_of(dp=2, tp=2)
    (relation,) = relate(taking({"w": (8,)}), taking({"w": (2,)}, mesh)).inputs
    assert relation.text == "dimension 0 sharded over dp and tp"
    assert held(relation, {W: numbered((8,))}).tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_fewer_heads_than_ranks_lie_on_neighbours_and_this_is_noted() -> None:
    relations = relate(taking({"w": (4, 2)}), taking({"w": (1, 2)}, mesh_of(tp=8)))
    assert text_of(relations) == "dimension 0 in 4 blocks over tp, each on 2 consecutive ranks"
    assert any("neighbouring ranks hold the same block" in note for note in relations.notes)


def test_equal_axes_are_undecided_without_names_or_roles() -> None:
    for mesh, role in ((mesh_of(x=2, y=2), "parameter"), (mesh_of(dp=2, tp=2), "buffer")):
        said = why(taking({"w": (8,)}, role=role), taking({"w": (4,)}, mesh, role=role))
        first, second = (name for name, _ in mesh.axes)
        assert f"dimension 0 sharded over {first}; or dimension 0 sharded over {second}" in said


def test_parameters_go_by_tensor_axes_and_the_rule_is_noted() -> None:
    relations = relate(taking({"w": (8, 4)}), taking({"w": (4, 4)}, mesh_of(dp=2, tp=2)))
    assert text_of(relations) == "dimension 0 sharded over tp"
    assert "parameters are taken as sharded over tp, not dp (w)" in relations.notes


def test_parameters_on_a_mesh_that_shards_them_over_data_are_undecided() -> None:
    assert "sharded over fsdp" in why(taking({"w": (8,)}), taking({"w": (4,)}, mesh_of(fsdp=2, tp=2)))


def with_a_parameter(shape: Shape, mesh: Mesh) -> Graph:
    build = GraphBuilder("mixed", mesh=mesh)
    build.input("w", "f32", shape)
    build.input("p", "f32", (3,), role="parameter")
    return build.graph()


def test_the_first_dimension_of_inputs_goes_by_data_axes() -> None:
    relations = relate(with_a_parameter((8, 4), Mesh()), with_a_parameter((4, 4), mesh_of(dp=2, tp=2)))
    assert text_of(relations) == "dimension 0 sharded over dp"
    assert "the first dimension of inputs is taken as sharded over dp, not tp (w)" in relations.notes


def test_other_dimensions_of_inputs_and_programs_without_roles_are_undecided() -> None:
    mesh = mesh_of(dp=2, tp=2)
    assert why(with_a_parameter((4, 8), Mesh()), with_a_parameter((4, 4), mesh))
    assert why(taking({"w": (8,)}, role="input"), taking({"w": (4,)}, mesh, role="input"))


def test_inputs_whose_batch_the_baseline_cuts_are_undecided() -> None:
    baseline = cutting((8, 4), 0, [(0, 4), (4, 8)], role="input")
    build = GraphBuilder("mixed", mesh=mesh_of(dp=2))
    build.input("w", "f32", (4, 4))
    build.input("p", "f32", (3,), role="parameter")
    assert "part by part" in why(baseline, build.graph())


def test_inputs_of_which_the_baseline_reads_some_are_sharded_as_they_lie() -> None:
    build = GraphBuilder("mixed", mesh=mesh_of(cp=2))
    build.input("w", "f32", (2, 4))
    build.input("p", "f32", (3,), role="parameter")
    relations = relate(cutting((2, 8), 1, [(7, 8)], role="input"), build.graph())
    assert text_of(relations) == "dimension 1 sharded over cp"


@pytest.mark.parametrize(
    ("whole", "part", "words"),
    [
        ((10,), (3,), "dimension 0 would fit with 5 or 10 elements"),
        ((12,), (24,), "dimension 0 would fit with 3, 6 or 12 elements"),
        ((12, 4), (12,), "2 dimensions are not 1"),
        ((8, 8), (4, 4), "dimensions [0, 1] differ"),
    ],
)
def test_shapes_that_fit_nothing_are_said_with_what_would(whole: Shape, part: Shape, words: str) -> None:
    mesh = mesh_of(a=2, b=2) if len(whole) == 1 else mesh_of(tp=4)
    said = why(taking({"w": whole}), taking({"w": part}, mesh))
    assert words in said
    assert f"the baseline holds {list(whole)}, every rank {list(part)}" in said


@pytest.mark.parametrize("windows", [[(0, 6), (4, 12)], [(0, 4), (8, 12)], [(0, 8)]])
def test_slices_with_overlaps_or_gaps_are_undecided(windows: list[tuple[int, int]]) -> None:
    said = why(cutting((12,), 0, windows), taking({"w": (6,)}, mesh_of(tp=2)))
    assert "do not lie side by side" in said


def test_slices_of_a_replicated_weight_do_not_matter() -> None:
    assert text_of(relate(cutting((12,), 0, [(0, 5)]), taking({"w": (12,)}, mesh_of(tp=2)))) == "replicated"


def test_parts_that_do_not_divide_are_undecided_with_the_blocks_that_would_fit() -> None:
    # Three parts of 16, 4 and 4: over 8 ranks keys and values lie on two ranks each.
    baseline = cutting((24,), 0, [(0, 16), (16, 20), (20, 24)])
    said = why(baseline, taking({"w": (4,)}, mesh_of(tp=8)))
    assert "would fit in blocks [8, 4, 4]" in said


@pytest.mark.parametrize("size", [1, 3])
def test_parts_that_are_alike_and_cannot_be_cut_are_shared_out_whole(size: int) -> None:
    windows = [(start, start + size) for start in range(0, 4 * size, size)]
    found = relate(cutting((4 * size,), 0, windows), taking({"w": (2 * size,)}, mesh_of(ep=2)))
    assert text_of(found) == text_of(relate(taking({"w": (8,)}), taking({"w": (4,)}, mesh_of(ep=2))))


def test_parts_of_which_one_does_not_divide_are_undecided() -> None:
    said = why(cutting((12,), 0, [(0, 9), (9, 12)]), taking({"w": (6,)}, mesh_of(tp=2)))
    assert "parts [9, 3] of dimension 0 are not all divisible by 2" in said


def test_interleaved_parts_are_sharded_as_they_lie() -> None:
    build = GraphBuilder("interleaved")
    value = build.input("w", "f32", (12,), role="parameter")
    for start in (0, 1):
        build.output(f"part{start}", window(build, value, 0, start, 11 + start, 2))
    assert text_of(relate(build.graph(), taking({"w": (6,)}, mesh_of(tp=2)))) == "dimension 0 sharded over tp"
    assert "side by side" in why(build.graph(), taking({"w": (3,)}, mesh_of(tp=4)))


def test_both_sides_on_the_same_ranks_hold_the_same() -> None:
    mesh = mesh_of(tp=4)
    (relation,) = relate(taking({"w": (3, 2)}, mesh), taking({"w": (3, 2)}, mesh)).inputs
    assert relation.parts[0].index == identity((4, 3, 2))
    assert "shapes differ" in why(taking({"w": (3, 2)}, mesh), taking({"w": (3, 1)}, mesh))


def test_other_numbers_of_ranks_are_undecided() -> None:
    said = why(taking({"w": (4,)}, mesh_of(tp=2)), taking({"w": (4,)}, mesh_of(tp=4)), "mesh")
    assert said == "the baseline runs on 2 ranks (tp 2), the candidate on 4 (tp 4)"


def test_other_precision_is_noted_and_another_kind_is_undecided() -> None:
    relations = relate(taking({"w": (4,)}), taking({"w": (4,)}, dtype="bf16"))
    assert "f32 in the baseline and bf16 are taken as the same values (w)" in relations.notes
    assert "is f32, this is i64" in why(taking({"w": (4,)}), taking({"w": (4,)}, dtype="i64"))


def test_inputs_without_counterpart_are_undecided_and_those_not_taken_are_unused() -> None:
    relations = relate(taking({"w": (4,), "a": (4,), "b": (4,)}), taking({"w": (4,), "rank_table": (4,)}))
    assert relations.undecided["input rank_table"] == "no counterpart; inputs left in the baseline: a, b"
    assert relations.unused == ("a", "b")


def test_inputs_stand_in_the_order_of_the_candidate() -> None:
    relations = relate(taking({"a": (4,), "b": (4,), "c": (4,)}), taking({"c": (4,), "a": (4,), "b": (4,)}))
    assert [relation.name for relation in relations.inputs] == ["c", "a", "b"]
    assert [relation.of for relation in relations.inputs] == [("c",), ("a",), ("b",)]


def test_without_ranks_nothing_is_assumed() -> None:
    relations = relate(taking({"w": (4,)}), taking({"w": (4,)}))
    assert relations.notes == ()


@given(st.permutations(range(4)), st.integers(0, 3))
def test_the_candidate_s_operations_never_matter(order: list[int], shift: int) -> None:
    baseline = cutting((2, 12), 1, [(0, 8), (8, 10), (10, 12)])
    build = GraphBuilder("candidate", mesh=mesh_of(tp=2))
    value = build.input("w", "f32", (2, 6), role="parameter")
    right = [window(build, value, 1, start, stop) for start, stop in ((0, 4), (4, 5), (5, 6))]
    wrong = window(build, value, 1, shift, shift + 2)
    values = [*right, wrong]
    for number in order:
        build.output(f"out{number}", values[number])
    scrambled = build.graph()
    plain = replace(scrambled, nodes=scrambled.inputs(), outputs=())
    assert relate(baseline, scrambled).inputs == relate(baseline, plain).inputs
    assert relate(baseline, scrambled).notes == relate(baseline, plain).notes


def layered(layers: int, mesh: Mesh) -> Graph:
    build = GraphBuilder("layered", mesh=mesh)
    x = build.input("x", "f32", (4, 8))
    for layer in range(layers):
        weight = build.input(f"layers.{layer}.w", "f32", (8 // mesh.size, 8), role="parameter")
        build.input(f"layers.{layer}.norm", "f32", (8,), role="parameter")
        if mesh.size == 1:
            x = build.add("add", x, build.add("einsum", x, weight, spec="bi,oi->bo"))
    return build.graph()


def test_ten_thousand_inputs_take_a_moment_and_share_their_maps() -> None:
    baseline, candidate = layered(5_000, Mesh()), layered(5_000, mesh_of(tp=2))
    start_s = process_time()
    relations = relate(baseline, candidate)
    # Some 0.2 s on an idle core; what is followed along 5,000 layers must not be followed once per layer.
    assert process_time() - start_s < 3
    assert len({id(relation.parts[0].index) for relation in relations.inputs}) == 3


def test_any_mesh_and_layout_is_found_or_left_undecided_but_never_mistaken() -> None:
    sizes = (("a", 2), ("b", 3), ("c", 2))
    for count in range(1, 4):
        mesh = Mesh(axes=sizes[:count])
        for dim, axes in (
            (d, mesh.axes[i:j]) for d in (0, 1) for i in range(count) for j in range(i, count + 1)
        ):
            ranks = prod(size for _, size in axes)
            whole = numbered((12, 12))
            relations = relate(taking({"w": (12, 12)}), taking({"w": local((12, 12), dim, ranks)}, mesh))
            expected = shards(whole, mesh, {dim: [name for name, _ in axes]})
            assert relations.undecided or np.array_equal(held(relations.inputs[0], {W: whole}), expected)
