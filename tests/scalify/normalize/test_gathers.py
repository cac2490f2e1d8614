"""Look-ups at places that are known, or put together of pieces: windows and pieces, not contractions."""

from collections.abc import Sequence

import numpy as np
import pytest
from lowered_values import Leaves, NodeBlocks
from scalify_cases import Pair, Program, replicated

from scalify.ir.evaluate import evaluate
from scalify.ir.graph import Graph
from scalify.normalize.lower import as_leaves, lower
from scalify.normalize.meaning import Values
from scalify.normalize.terms import Terms
from scalify.prove.verify import verify
from scalify.verdict import Proved

ROWS, TOKENS, ANGLES = 12, 6, 4


def listed(*rows: int) -> Graph:
    p = Program()
    x = p.input("x", "f32", (3, 2))
    p.output("y", p.add("take", x, p.add("constant", data=rows, shape=(len(rows),), dtype="i64"), axis=0))
    return p.graph()


def operations(graph: Graph) -> set[str]:
    terms = Terms()
    _ = lower(graph.nodes, 1, as_leaves(graph, terms, ""), terms)
    return {terms[number].op.split(":")[0] for number in terms.numbers()}


@pytest.mark.parametrize("rows", [(0, 0, 1, 2), (2, 0), (1, 1), (0, 1, 2), (2, 1, 0), (0, 2, 0, 2)])
def test_rows_of_a_list_are_windows(rows: Sequence[int]) -> None:
    graph = listed(*rows)
    x = np.arange(6.0).reshape(3, 2)
    terms = Terms()
    lowered = lower(graph.nodes, 1, as_leaves(graph, terms, ""), terms)
    found = Values(terms, Leaves(graph, {"x": [x]}), NodeBlocks(graph)).of(
        lowered.accesses[graph.outputs[0].value]
    )
    np.testing.assert_array_equal(found[0], x[list(rows)])
    np.testing.assert_array_equal(found[0], evaluate(graph, {"x": [x]})["y"][0])
    assert operations(graph) <= {"leaf", "index", "number", "cat"}


def test_a_row_that_is_none_is_no_window() -> None:
    assert "sum" in operations(listed(0, 3)), "nothing is said of rows that do not exist"


def sections() -> Graph:
    """Each section of the angles turns by a row of positions of its own."""
    p = Program()
    positions, table = p.input("positions", "i64", (3, TOKENS)), p.input("table", "f32", (ROWS, ANGLES))
    angles = p.add("take", table, positions, axis=0)
    parts = [
        p.shaped(p.cut(p.cut(angles, 0, row, 1), 2, start, size), TOKENS, size)
        for row, (start, size) in enumerate(((0, 2), (2, 1), (3, 1)))
    ]
    p.output("y", p.joined(1, *parts))
    return p.graph()


def angle_by_angle(*rows: int) -> Graph:
    p = Program()
    positions, table = p.input("positions", "i64", (3, TOKENS)), p.input("table", "f32", (ROWS, ANGLES))
    row = p.add("constant", data=rows, shape=(ANGLES,), dtype="i64")
    places = p.turned(p.add("take", positions, row, axis=0), 1, 0)
    p.output("y", p.add("take_along", table, places, axis=0))
    return p.graph()


@pytest.mark.parametrize(
    ("rows", "is_right"), [((0, 0, 1, 2), True), ((0, 1, 1, 2), False), ((0,) * 4, False)]
)
def test_positions_chosen_angle_by_angle(rows: Sequence[int], is_right: bool) -> None:
    pair = Pair(
        verdict="proved" if is_right else "unknown",
        baseline=sections(),
        candidate=angle_by_angle(*rows),
        inputs={"positions": replicated, "table": replicated},
        outputs={"y": replicated},
        draws={"positions": lambda rng, shape: rng.integers(0, ROWS, shape)},
    )
    assert pair.differing() == (() if is_right else ("y",))
    verdict = verify(pair.baseline, pair.candidate, pair.relations())
    assert isinstance(verdict, Proved) == is_right
