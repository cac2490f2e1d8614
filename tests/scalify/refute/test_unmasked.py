"""No value where rows are masked is excused; no value where they are not is a difference."""

from scalify_cases import Program

from scalify.ir.graph import Graph
from scalify.refute.budget import Search
from scalify.verdict import Refuted
from scalify.verification import verification

SEARCH = Search(duration_s=20.0, draws=8)
ROWS = 4
INFINITY = float("inf")


def attention(*, masked_by: float, axis: int = 2, behind: int = 0) -> Graph:
    """Scores [2, T, T] of which a row sees itself and what is before it, but for the last ``behind``."""
    program = Program()
    scores = program.input("scores", "f32", (2, ROWS, ROWS))
    value = program.input("value", "f32", (2, ROWS, 3))
    place = program.add("iota", shape=(ROWS,), dtype="i64", axis=0)
    rows = program.add("broadcast", place, dims=(1,), shape=(2, ROWS, ROWS))
    columns = program.add("broadcast", program.add("add", place, behind), dims=(2,), shape=(2, ROWS, ROWS))
    low = program.add("broadcast", program.constant(masked_by, "f32"), dims=(), shape=(2, ROWS, ROWS))
    seen = program.add("where", program.add("le", columns, rows), scores, low)
    program.output("y", program.product("btu,bud->btd", program.add("softmax", seen, axis=axis), value))
    return program.graph()


def verdict(baseline: Graph, candidate: Graph) -> object:
    return verification(baseline, candidate, search=SEARCH).verdict


def test_a_softmax_along_the_masked_dimension_that_has_no_value_is_refuted():
    wrong = attention(masked_by=-INFINITY, axis=0)
    assert isinstance(verdict(attention(masked_by=-INFINITY), wrong), Refuted)
    assert isinstance(verdict(attention(masked_by=-1e9), wrong), Refuted)


def test_rows_of_which_nothing_is_seen_may_have_no_value():
    low, infinite = attention(masked_by=-3e38, behind=1), attention(masked_by=-INFINITY, behind=1)
    assert not isinstance(verdict(low, infinite), Refuted)
    assert not isinstance(verdict(infinite, low), Refuted)
