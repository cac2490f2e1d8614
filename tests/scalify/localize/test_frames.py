"""The line that a report names is where right and wrong executions part."""

import pytest

from scalify.ir.graph import Graph, Node, NodeId, Site, TensorType
from scalify.localize.frames import Lines, in_counterpart, line_of

TOP, LAYER, OTHER_LAYER = Site("m.py", 1, "forward"), Site("m.py", 10, "layer"), Site("m.py", 20, "layer")
CALL, OTHER_CALL = Site("m.py", 11, "mix"), Site("m.py", 12, "mix")
WITHIN, SUM = Site("ranks.py", 3, "summed"), Site("ranks.py", 7, "all_reduced")


def node(name: str, *stack: Site, op: str = "add") -> Node:
    return Node(id=NodeId(name), op=op, type=TensorType("f32", ()), site=stack[-1], stack=stack)


def graph(*nodes: Node) -> Graph:
    return Graph(name="", nodes=nodes, outputs=())


def named(wrong: Node, right: tuple[Node, ...] = (), baseline: tuple[Node, ...] = ()) -> Site | None:
    lines = Lines(graph(*baseline), graph(wrong, *right))
    return line_of(wrong, lines.outward(wrong, right))


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        ((), SUM),
        ((node("r", TOP, OTHER_CALL, SUM),), CALL),
        ((node("r", TOP, OTHER_LAYER, CALL, SUM),), TOP),
        ((node("r", TOP, CALL, SUM),), SUM),
        ((node("r", TOP, OTHER_CALL, SUM, op="mul"),), SUM),
        ((node("r", TOP, OTHER_CALL, WITHIN),), SUM),
    ],
    ids=[
        "nothing right came by",
        "called elsewhere",
        "called by a line that is called elsewhere",
        "right at one time and wrong at another",
        "another operation",
        "another line",
    ],
)
def test_a_line_by_which_right_nodes_came_is_innocent(right: tuple[Node, ...], expected: Site) -> None:
    assert named(node("w", TOP, CALL, SUM), right) == expected


def test_the_candidates_own_method_is_named_where_shared_code_is_called_from_it() -> None:
    wrong = node("w", TOP, OTHER_LAYER, SUM)
    assert named(wrong, baseline=(node("b", TOP, LAYER, SUM),)) == OTHER_LAYER


@pytest.mark.parametrize(
    "baseline",
    [node("b", TOP, LAYER, WITHIN), node("b", TOP, CALL, SUM), node("b", CALL, OTHER_LAYER, SUM)],
    ids=["the line is the candidate's own", "another function", "from elsewhere"],
)
def test_no_method_is_named_that_replaces_none(baseline: Node) -> None:
    assert named(node("w", TOP, OTHER_LAYER, SUM), baseline=(baseline,)) == SUM


def test_another_line_of_the_same_method_replaces_none() -> None:
    wrong, right = node("w", TOP, OTHER_LAYER, SUM), node("r", TOP, LAYER, WITHIN)
    assert named(wrong, (right,), (node("b", TOP, LAYER, SUM),)) == SUM


def test_no_method_is_named_that_goes_through_much_shared_code() -> None:
    shared = (WITHIN, CALL, OTHER_CALL, SUM)
    assert named(node("w", TOP, OTHER_LAYER, *shared), baseline=(node("b", TOP, LAYER, *shared),)) == SUM


def test_new_lines_are_those_of_a_method_that_the_baseline_runs_as_well() -> None:
    lines = Lines(graph(node("b", TOP, LAYER)), graph())
    assert lines.is_new((TOP, OTHER_LAYER, SUM))
    assert not lines.is_new((TOP, LAYER, SUM))
    assert not lines.is_new((TOP, SUM))
    assert not lines.is_new(())


def test_a_counterpart_is_shown_where_functions_of_the_same_names_called_it() -> None:
    wrong = node("w", TOP, OTHER_LAYER, SUM)
    assert in_counterpart(wrong, node("b", TOP, LAYER, SUM), 1) == 1
    assert in_counterpart(wrong, node("b", TOP, LAYER, WITHIN), 1) == 0
    assert in_counterpart(wrong, node("b", SUM), 1) == 0
    assert line_of(node("w", SUM), 0) == SUM
