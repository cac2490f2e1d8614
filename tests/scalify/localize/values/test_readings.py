"""Readings: in which ways ranks may hold one value of the baseline."""

import numpy as np

from scalify.ir.build import GraphBuilder
from scalify.ir.mesh import Mesh, MeshAxis
from scalify.localize.values.readings import Ranks, Reading, readings

TWO_BY_TWO = Mesh(axes=(("dp", 2), ("tp", 2)))


def ranks(mesh: Mesh, *axes: MeshAxis, unrolled: bool = False, baseline: int = 1) -> Ranks:
    return Ranks(mesh, axes or mesh.placed(), unrolled, baseline)


def named(found: tuple[Reading, ...], text: str) -> Reading:
    (reading,) = (each for each in found if each.text == text)
    return reading


def test_blocks_lie_in_the_order_of_the_ranks_along_an_axis() -> None:
    whole = np.arange(8)
    found = readings((8,), (4,), ranks(TWO_BY_TWO))
    by_axis = {each.text: [part.tolist() for part in each.of([whole])] for each in found if each.is_plain}
    low, high = [0, 1, 2, 3], [4, 5, 6, 7]
    assert by_axis["dimension 0 sharded over dp"] == [low, low, high, high]
    assert by_axis["dimension 0 sharded over tp"] == [low, high, low, high]


def test_two_dimensions_are_cut_along_axes_of_their_own() -> None:
    whole = np.arange(16).reshape(4, 4)
    found = readings((4, 4), (2, 2), ranks(TWO_BY_TWO))
    plain = [each for each in found if each.is_plain]
    texts = {each.text for each in plain}
    assert texts == {
        "dimension 0 sharded over dp, dimension 1 sharded over tp",
        "dimension 0 sharded over tp, dimension 1 sharded over dp",
    }
    reading = named(found, "dimension 0 sharded over dp, dimension 1 sharded over tp")
    assert [int(part[0, 0]) for part in reading.of([whole])] == [0, 2, 8, 10]


def test_the_plainest_readings_come_first() -> None:
    found = readings((4, 4), (4, 4), ranks(TWO_BY_TWO))
    assert (found[0].text, found[0].is_plain) == ("replicated", True)
    assert not any(each.is_plain for each in found[1:])


def test_a_transposition_and_a_reshape_are_read_through() -> None:
    whole = np.arange(24).reshape(2, 3, 4)
    turned = [each for each in readings((2, 3, 4), (3, 2, 4), ranks(TWO_BY_TWO)) if each.perm is not None]
    assert [each.of([whole])[0].tolist() for each in turned] == [whole.transpose(1, 0, 2).tolist()]
    flat = [each for each in readings((2, 3, 4), (6, 2), ranks(Mesh(axes=(("tp", 2),)))) if each.shape]
    assert whole.reshape(6, 4)[:, :2].tolist() in [each.of([whole])[0].tolist() for each in flat]


def test_ranks_side_by_side_hold_windows() -> None:
    found = readings((5,), (2,), ranks(Mesh(), unrolled=True))
    assert [each.text for each in found][:2] == ["0-1 of dimension 0", "1-2 of dimension 0"]
    assert len(found) == 4


def test_a_baseline_on_ranks_of_its_own_is_compared_rank_by_rank() -> None:
    assert [each.text for each in readings((3,), (3,), ranks(TWO_BY_TWO, baseline=4))] == [
        "the same on each rank"
    ]
    assert readings((6,), (3,), ranks(TWO_BY_TWO, baseline=4)) == ()


def test_groups_of_collectives_imply_an_axis() -> None:
    build = GraphBuilder("one", mesh=Mesh(axes=(("rank", 4),)))
    x = build.input("x", "f32", (2,))
    build.output("y", build.add("all_reduce", x, kind="sum", groups=((0, 2), (1, 3))))
    candidate = build.graph()
    single = GraphBuilder("other")
    single.output("y", single.input("x", "f32", (2,)))
    found = Ranks.of(single.graph(), candidate)
    assert {(axis.stride, axis.size) for axis in found.axes} == {(1, 4), (2, 2)}
    assert [len(axes) for axes in found.sets()] == [1, 1]


def test_groups_of_channels_imply_none() -> None:
    build = GraphBuilder("one", mesh=Mesh(axes=(("rank", 4),)))
    x, weight = build.input("x", "f32", (1, 2, 4)), build.input("w", "f32", (2, 1, 3))
    made = build.add("conv", x, weight, groups=2, strides=(1,), padding=((1, 1),), dilation=(1,))
    build.output("y", made)
    single = GraphBuilder("other")
    single.output("y", single.input("x", "f32", (2,)))
    assert [axis.stride for axis in Ranks.of(single.graph(), build.graph()).axes] == [1]
