"""Cuts: slices the baseline takes of an input are found through what keeps the dimension, and only those."""

import pytest
from related import window

from scalify.ir.build import GraphBuilder
from scalify.ir.graph import NodeId
from scalify.relate.cuts import Cut, Cuts, stride_of, tiling


class Fused:
    """A linear layer with a fused weight ``w`` [5, 12]; ``y`` is its result [2, 3, 12]."""

    def __init__(self) -> None:
        self.build = GraphBuilder("fused")
        x = self.build.input("x", "f32", (2, 3, 5))
        self.w = self.build.input("w", "f32", (5, 12), role="parameter")
        self.y = self.build.add("einsum", x, self.w, spec="bsi,io->bso")

    def give(self, *values: NodeId) -> None:
        for number, value in enumerate(values):
            self.build.output(f"out{number}", value)

    def cuts(self, value: NodeId | None = None, dim: int = 1) -> tuple[tuple[int, int], ...]:
        found = Cuts(self.build.graph()).of(self.w if value is None else value, dim)
        assert all(cut.step == 1 for cut in found)
        return tuple((cut.start, cut.size) for cut in found)


def parts(fused: Fused, value: NodeId, dim: int) -> list[NodeId]:
    return [window(fused.build, value, dim, start, stop) for start, stop in ((0, 6), (6, 9), (9, 12))]


QKV = ((0, 6), (6, 3), (9, 3))


def test_slices_of_a_product_are_slices_of_the_weight() -> None:
    fused = Fused()
    fused.give(*parts(fused, fused.y, 2))
    assert fused.cuts() == QKV


def test_the_contracted_dimension_is_not_cut() -> None:
    fused = Fused()
    fused.give(*parts(fused, fused.y, 2))
    assert fused.cuts(dim=0) == ()


def test_slices_of_the_weight_itself() -> None:
    fused = Fused()
    fused.give(*parts(fused, fused.w, 1))
    assert fused.cuts() == QKV


def test_through_bias_cast_transpose_and_broadcast() -> None:
    fused = Fused()
    build = fused.build
    bias = build.input("bias", "f32", (12,), role="parameter")
    value = build.add("add", build.add("cast", fused.y, dtype="f64"), bias)
    value = build.add("transpose", value, perm=(2, 0, 1))
    value = build.add("broadcast", value, shape=(7, 12, 2, 3), dims=(1, 2, 3))
    fused.give(*parts(fused, value, 1))
    assert fused.cuts() == QKV
    assert fused.cuts(bias, 0) == QKV


def test_through_a_reshape_that_leaves_the_dimension_alone() -> None:
    fused = Fused()
    fused.give(*parts(fused, fused.build.add("reshape", fused.y, shape=(6, 1, 12)), 2))
    assert fused.cuts() == QKV


def test_a_reshape_that_splits_it_keeps_its_outermost_dimension() -> None:
    fused = Fused()
    heads = fused.build.add("reshape", fused.y, shape=(2, 3, 4, 3))
    fused.give(*(window(fused.build, heads, 2, start, stop) for start, stop in ((0, 2), (2, 3), (3, 4))))
    assert fused.cuts() == QKV


def test_slices_inside_heads_are_none_of_the_weight() -> None:
    fused = Fused()
    heads = fused.build.add("reshape", fused.y, shape=(2, 3, 3, 4))
    fused.give(window(fused.build, heads, 3, 0, 2), window(fused.build, heads, 3, 2, 4))
    assert fused.cuts() == ()


def test_a_reshape_that_merges_it_with_others_ends_it() -> None:
    fused = Fused()
    merged = fused.build.add("reshape", fused.y, shape=(2, 36))
    fused.give(window(fused.build, merged, 1, 0, 18), window(fused.build, merged, 1, 18, 36))
    assert fused.cuts() == ()


def test_parts_of_parts_count_and_not_the_part() -> None:
    fused = Fused()
    q, kv = window(fused.build, fused.y, 2, 0, 6), window(fused.build, fused.y, 2, 6, 12)
    k, v = window(fused.build, kv, 2, 0, 3), window(fused.build, kv, 2, 3, 6)
    fused.give(q, k, v)
    assert fused.cuts() == QKV


def test_whole_slices_are_none() -> None:
    fused = Fused()
    fused.give(window(fused.build, fused.y, 2, 0, 12), window(fused.build, fused.y, 1, 0, 2))
    assert fused.cuts() == ()


def test_an_unrelated_dimension_of_a_sum_is_not_followed() -> None:
    fused = Fused()
    wide = fused.build.add("reduce", fused.y, kind="sum", axes=(2,), keepdims=True)
    square = fused.build.add("add", wide, fused.build.input("z", "f32", (2, 3, 12)))
    fused.give(*parts(fused, square, 2))
    assert fused.cuts() == ()


def test_both_operands_of_one_op_are_followed() -> None:
    build = GraphBuilder("twice")
    w = build.input("w", "f32", (4, 4), role="parameter")
    both = build.add("einsum", w, w, spec="ab,bc->ac")
    build.output("left", window(build, both, 0, 0, 2))
    build.output("right", window(build, both, 1, 1, 4))
    cuts = Cuts(build.graph())
    assert cuts.of(w, 0) == (Cut(0, 2, 1),)
    assert cuts.of(w, 1) == (Cut(1, 3, 1),)


def test_a_chain_of_ten_thousand_ops_is_followed() -> None:
    build = GraphBuilder("deep")
    w = value = build.input("w", "f32", (4,), role="parameter")
    for _ in range(10_000):
        value = build.add("neg", value)
    build.output("half", window(build, value, 0, 0, 2))
    assert Cuts(build.graph()).of(w, 0) == (Cut(0, 2, 1),)


@pytest.mark.parametrize(
    ("cuts", "sizes"),
    [
        (((0, 6), (6, 3), (9, 3)), (6, 3, 3)),
        (((0, 12),), (12,)),
        (((0, 6), (6, 3)), None),
        (((0, 6), (5, 7)), None),
        (((0, 5), (6, 6)), None),
        (((1, 11),), None),
        ((), None),
    ],
)
def test_tilings_have_neither_gaps_nor_overlaps(
    cuts: tuple[tuple[int, int], ...], sizes: tuple[int, ...] | None
) -> None:
    assert tiling(tuple(Cut(start, size, 1) for start, size in cuts), 12) == sizes


def test_every_other_element_is_no_part_but_a_stride() -> None:
    cuts = (Cut(0, 6, 2), Cut(1, 6, 2))
    assert tiling(cuts, 12) is None
    assert stride_of(cuts, 12) == 2
    assert stride_of(cuts[:1], 12) is None
