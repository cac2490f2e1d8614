"""Layouts: every one that fits is found, and its index map is what numpy.split makes."""

from itertools import combinations
from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from related import mesh_of, numbered, places, read_through, shards

from scalify.ir.mesh import Mesh
from scalify.relate.layouts import Split, axes_by_size, index_of, layouts, text_of

MESHES = (
    mesh_of(tp=4),
    mesh_of(dp=2, tp=2),
    mesh_of(dp=2, tp=3),
    mesh_of(pp=2, dp=1, tp=4),
    mesh_of(a=2, b=2, c=2),
    mesh_of(a=4, b=2, c=3),
)


@st.composite
def cut_tensors(draw: st.DrawFn) -> tuple[Mesh, dict[int, tuple[str, ...]], tuple[int, ...]]:
    """A mesh, which dimensions are cut over which axes, and the shape on one rank."""
    mesh = draw(st.sampled_from(MESHES))
    local = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    free = [name for name, size in mesh.axes if size > 1]
    cuts: dict[int, tuple[str, ...]] = {}
    for dim in draw(st.permutations(range(len(local))))[: draw(st.integers(0, 2))]:
        count = draw(st.integers(0, len(free)))
        if count:
            chosen = draw(st.permutations(free))[:count]
            cuts[dim] = tuple(name for name, _ in mesh.axes if name in chosen)
            free = [name for name in free if name not in chosen]
    return mesh, cuts, local


def whole_shape(mesh: Mesh, cuts: dict[int, tuple[str, ...]], local: tuple[int, ...]) -> tuple[int, ...]:
    sizes = dict(mesh.axes)
    return tuple(size * prod(sizes[axis] for axis in cuts.get(dim, ())) for dim, size in enumerate(local))


@given(cut_tensors())
def test_the_layout_that_was_cut_is_among_those_that_fit_and_reads_what_was_cut(
    case: tuple[Mesh, dict[int, tuple[str, ...]], tuple[int, ...]],
) -> None:
    mesh, cuts, local = case
    shape = whole_shape(mesh, cuts, local)
    whole = numbered(shape)
    expected = shards(whole, mesh, cuts)

    read = [
        read_through(index_of(layout, local, shape, mesh, {}), whole[None])
        for layout in layouts(shape, local, mesh)
    ]

    assert any(np.array_equal(expected, one) for one in read)


@given(cut_tensors())
def test_every_layout_that_fits_holds_every_element_equally_often(
    case: tuple[Mesh, dict[int, tuple[str, ...]], tuple[int, ...]],
) -> None:
    mesh, cuts, local = case
    shape = whole_shape(mesh, cuts, local)
    for layout in layouts(shape, local, mesh):
        count = np.zeros((1, *shape), dtype=int)
        np.add.at(count, places(index_of(layout, local, shape, mesh, {})), 1)
        assert np.all(count == mesh.size * prod(local) // prod(shape)), text_of(layout)


@given(cut_tensors())
def test_layouts_that_fit_read_differently(
    case: tuple[Mesh, dict[int, tuple[str, ...]], tuple[int, ...]],
) -> None:
    mesh, cuts, local = case
    shape = whole_shape(mesh, cuts, local)
    indices = [index_of(layout, local, shape, mesh, {}) for layout in layouts(shape, local, mesh)]
    assert len(set(indices)) == len(indices)


def test_two_axes_of_one_size_both_fit() -> None:
    found = layouts((8, 4), (4, 4), mesh_of(dp=2, tp=2))
    assert [text_of(layout) for layout in found] == [
        "dimension 0 sharded over dp",
        "dimension 0 sharded over tp",
    ]


def test_all_axes_together_are_cut_in_the_order_of_the_ranks() -> None:
    (layout,) = layouts((8,), (2,), mesh_of(dp=2, tp=2))
    index = index_of(layout, (2,), (8,), mesh_of(dp=2, tp=2), {})
    assert np.array_equal(read_through(index, numbered((8,))[None]), numbered((4, 2)))


def test_fewer_blocks_than_ranks_lie_on_neighbours() -> None:
    mesh = mesh_of(tp=8)
    (layout,) = layouts((4, 2), (1, 2), mesh)
    assert text_of(layout) == "dimension 0 in 4 blocks over tp, each on 2 consecutive ranks"
    read = read_through(index_of(layout, (1, 2), (4, 2), mesh, {}), numbered((4, 2))[None])
    assert np.array_equal(read[:, 0], np.repeat(numbered((4, 2)), 2, axis=0))


def test_blocks_over_two_axes_read_neighbours_of_both() -> None:
    mesh = mesh_of(dp=2, tp=4)
    split = Split(0, 4, mesh.placed())
    read = read_through(index_of((split,), (1,), (4,), mesh, {}), numbered((4,))[None])
    assert read.ravel().tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_blocks_that_end_within_an_axis_have_no_digits() -> None:
    assert Split(0, 3, mesh_of(dp=2, tp=4).placed()).digits() is None


def test_what_cannot_fit_does_not() -> None:
    mesh = mesh_of(tp=4)
    for whole, local in [
        ((10,), (3,)),
        ((4,), (8,)),
        ((4, 4), (4,)),
        ((9,), (3,)),
        ((8, 8), (4, 4)),
        ((4, 4, 4), (1, 1, 1)),
        ((4,), (0,)),
    ]:
        assert layouts(whole, local, mesh) == ()


def test_sets_of_axes_stand_in_the_order_of_the_mesh() -> None:
    mesh = mesh_of(a=2, b=3, c=5)
    sets = [tuple(axis.name for axis in axes) for found in axes_by_size(mesh).values() for axes in found]
    assert sorted(sets) == sorted(names for n in (1, 2, 3) for names in combinations("abc", n))


def test_of_very_many_axes_only_neighbours_are_tried() -> None:
    mesh = Mesh(axes=tuple((f"x{number}", 2) for number in range(30)))
    assert sum(map(len, axes_by_size(mesh).values())) == 30 * 31 // 2
    endless = Mesh(axes=tuple((f"x{number}", 2) for number in range(1_000)))
    assert sum(map(len, axes_by_size(endless).values())) == 1_001
