"""How values on ranks stand to one of the baseline, measured."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from scalify.ir.build import GraphBuilder
from scalify.ir.evaluate import PerRank
from scalify.ir.graph import NodeId
from scalify.ir.mesh import Mesh
from scalify.localize.values.kept import Kept, kept
from scalify.localize.values.standings import Measured, Values

X, Y = NodeId("x"), NodeId("y")
WHOLE = np.random.default_rng(0).normal(size=(4, 6))


def one_input(name: str, value: PerRank, mesh: Mesh) -> Kept:
    build = GraphBuilder("one", mesh=mesh)
    x = build.input(name, "f32", value[0].shape)
    build.output("out", x)
    return kept(build.graph(), {name: value})


def measured(value: PerRank, given: NDArray[np.float64] = WHOLE) -> Measured:
    mesh = Mesh(axes=(("tp", len(value)),))
    return Values(one_input("x", [given], Mesh()), one_input("y", value, mesh)).measured(Y, X)


def shards(axis: int) -> PerRank:
    return list(np.split(WHOLE, 2, axis))


def addends() -> PerRank:
    other = np.random.default_rng(1).normal(size=WHOLE.shape)
    return [WHOLE - other, other]


@pytest.mark.parametrize(
    ("make", "layout"),
    [
        (lambda: [WHOLE, WHOLE.copy()], "replicated"),
        (lambda: shards(0), "dimension 0 sharded over tp"),
        (lambda: shards(1), "dimension 1 sharded over tp"),
    ],
)
def test_what_is_held_as_it_should_be_is_right(make: Callable[[], PerRank], layout: str) -> None:
    found = measured(make())
    assert (found.standing.layout, found.is_right) == (layout, True)


def test_addends_are_still_to_be_summed() -> None:
    found = measured(addends())
    assert found.standing.is_clean
    assert found.standing.partial is not None
    assert (found.standing.partial.kind, found.standing.partial.ranks, found.is_right) == ("sum", 2, False)


def test_the_largest_on_each_rank_is_still_to_be_compared() -> None:
    low = WHOLE - np.abs(WHOLE)
    found = measured([np.where(WHOLE > 0, WHOLE, low), np.where(WHOLE > 0, low, WHOLE)])
    assert found.standing.partial is not None
    assert found.standing.partial.kind == "max"


def test_half_of_it_on_both_ranks_is_a_half_and_no_sum() -> None:
    found = measured([WHOLE / 2, WHOLE / 2])
    assert found.standing.partial is None
    assert (found.standing.scale.numerator, found.standing.scale.denominator) == (1, 2)


def test_the_same_numbers_in_another_order_are_moved() -> None:
    assert measured([WHOLE[::-1], WHOLE[::-1]]).moved
    turned = measured([WHOLE.T.copy()] * 2)
    assert turned.moved
    assert turned.reading is not None


def test_other_numbers_are_not_related() -> None:
    found = measured([np.sin(WHOLE)] * 2)
    assert not found.standing.is_related
    assert not found.moved


def test_an_odd_factor_and_a_number_added_are_told() -> None:
    assert measured([WHOLE * 0.3535533905932738] * 2).factor == pytest.approx(0.35355339)
    assert measured([WHOLE + 3.0] * 2).added == 3.0
