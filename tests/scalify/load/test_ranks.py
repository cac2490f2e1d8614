"""One program out of every rank's: what may differ, and what may not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalify.errors import InvalidGraph
from scalify.ir.build import GraphBuilder
from scalify.ir.check import check
from scalify.ir.graph import Graph
from scalify.ir.mesh import Mesh, RankInt, on_rank
from scalify.load.ranks import affine, merge

FOUR = Mesh(axes=(("tp", 4),))


def slicing(start: int, *, op: str = "neg", name: str = "x", rows: int = 2) -> Graph:
    """x[start : start + rows], then another op."""
    build = GraphBuilder("rank", mesh=FOUR)
    x = build.input(name, "f32", (8, 3))
    part = build.add("slice", x, starts=(start, 0), limits=(start + rows, 3), steps=(1, 1))
    build.output("y", build.add(op, part))
    return build.graph()


def test_starts_of_shards_become_affine_in_the_rank() -> None:
    graph = merge({rank: slicing(2 * rank) for rank in range(4)}, FOUR)

    check(graph)
    starts = graph.nodes[1].attrs["starts"]
    assert starts == (RankInt(base=0, terms=((1, 4, 2),)), 0)


def test_equal_programs_stay_as_they_are() -> None:
    graph = slicing(0)

    assert merge(dict.fromkeys(range(4), graph), FOUR) == graph
    assert merge({rank: slicing(0) for rank in range(4)}, FOUR) == graph


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (slicing(2, op="abs"), "neg on rank 0 but abs on rank 3"),
        (slicing(2, name="z"), "name"),
        (slicing(2, rows=3), "f32"),
        (slicing(5), "not affine"),
    ],
)
def test_any_other_difference_names_the_node_and_the_ranks(other: Graph, what: str) -> None:
    graphs = {rank: slicing(2 * rank if what == "not affine" else 2) for rank in range(3)} | {3: other}

    with pytest.raises(InvalidGraph, match=what) as caught:
        merge(graphs, FOUR)
    assert "test_ranks.py" in str(caught.value)


def test_missing_ranks_are_named() -> None:
    with pytest.raises(InvalidGraph, match="ranks 1, 3 of 4 are missing"):
        merge({0: slicing(0), 2: slicing(0)}, FOUR)


def test_ranks_of_different_meshes_are_refused() -> None:
    build = GraphBuilder("rank", mesh=Mesh(axes=(("dp", 4),)))
    build.output("y", build.input("x", "f32", (2,)))

    with pytest.raises(InvalidGraph, match="mesh dp=4"):
        merge({**dict.fromkeys(range(3), slicing(0)), 3: build.graph()}, FOUR)


def test_a_whole_float_that_differs_is_a_cast_integer() -> None:
    def scaled(factor: float) -> Graph:
        build = GraphBuilder("rank", mesh=FOUR)
        build.output("y", build.add("mul", build.input("x", "f32", (2,)), build.constant(factor, "f32")))
        return build.graph()

    graph = merge({rank: scaled(float(rank)) for rank in range(4)}, FOUR)

    check(graph)
    assert [node.op for node in graph.nodes] == ["input", "constant", "cast", "mul"]
    with pytest.raises(InvalidGraph, match="not affine"):
        merge({rank: scaled(rank / 2) for rank in range(4)}, FOUR)


MESHES = (
    FOUR,
    Mesh(axes=(("dp", 2), ("tp", 4))),
    Mesh(axes=(("pp", 3), ("tp", 6))),
    Mesh(axes=(("ep", 12),)),
)


@given(st.data())
def test_what_is_affine_in_digits_is_found_exactly(data: st.DataObject) -> None:
    mesh = data.draw(st.sampled_from(MESHES))
    digits = [(axis.stride, axis.size) for axis in mesh.placed()]
    digits += [(2, 2)] if mesh is FOUR else []
    base = data.draw(st.integers(-5, 5))
    factors = data.draw(st.lists(st.integers(-4, 4), min_size=len(digits), max_size=len(digits)))
    values = [
        base + sum(f * (rank // stride % size) for f, (stride, size) in zip(factors, digits, strict=True))
        for rank in range(mesh.size)
    ]

    found = affine(values, mesh)

    assert found is not None
    assert [on_rank(found, rank) for rank in range(mesh.size)] == values


@given(st.lists(st.integers(0, 3), min_size=8, max_size=8))
def test_what_is_found_has_the_values_that_were_given(values: list[int]) -> None:
    found = affine(values, Mesh(axes=(("dp", 2), ("tp", 4))))

    assert found is None or [on_rank(found, rank) for rank in range(8)] == values


def test_replicated_heads_count_by_pairs_of_ranks() -> None:
    assert affine([0, 0, 1, 1], FOUR) == RankInt(base=0, terms=((2, 2, 1),))
    assert affine([0, 1, 0, 1], FOUR) == RankInt(base=0, terms=((1, 2, 1),))
    assert affine([1, 2, 3, 0], FOUR) is None
