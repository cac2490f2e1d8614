"""The corpus of pairs: each is what it says in NumPy, and gets the verdict that it says."""

import pytest
from scalify_cases import FOLDER, Pair, case_names, gap_of, load_pair, suspect_lines, with_itself

from scalify.ir.graph import Graph
from scalify.prove.verify import verify
from scalify.verdict import Proved

NAMES = case_names()


def _with_gaps() -> list[object]:
    """Cases that the prover does not get right yet are expected to fail, and noticed once it does."""
    return [
        pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=gap)) if gap else name
        for name, gap in ((name, gap_of(name)) for name in NAMES)
    ]


def _sides(pair: Pair) -> tuple[Graph, Graph]:
    return pair.baseline, pair.candidate


@pytest.mark.parametrize("name", NAMES)
def test_folder_and_verdict_agree(name: str) -> None:
    assert load_pair(name).verdict == name.split("/")[0]


@pytest.mark.parametrize("name", NAMES)
def test_each_graph_is_proved_equal_to_itself(name: str) -> None:
    for graph in _sides(load_pair(name)):
        assert isinstance(verify(graph, graph, with_itself(graph)), Proved)


@pytest.mark.parametrize("name", NAMES)
def test_values_differ_exactly_where_the_case_says(name: str) -> None:
    pair = load_pair(name)
    wrong = set(pair.outputs) - set(pair.agreeing) if pair.verdict == "unknown" or pair.declared else set()
    assert set(pair.differing()) == wrong


@pytest.mark.parametrize("name", _with_gaps())
def test_verdict(name: str) -> None:
    pair = load_pair(name)
    verdict = verify(pair.baseline, pair.candidate, pair.relations())
    assert isinstance(verdict, Proved) == (pair.verdict == "proved")


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("unknown/")])
def test_no_output_that_differs_is_shown_as_proved(name: str) -> None:
    pair = load_pair(name)
    assert _proved_outputs(pair) <= set(pair.agreeing)


@pytest.mark.xfail(strict=True, reason="outputs are only shown of regions that are proved as a whole")
@pytest.mark.parametrize("name", [name for name in NAMES if load_pair(name).agreeing])
def test_outputs_that_agree_are_shown_as_proved(name: str) -> None:
    pair = load_pair(name)
    assert _proved_outputs(pair) == set(pair.agreeing)


def _proved_outputs(pair: Pair) -> set[str]:
    outputs = verify(pair.baseline, pair.candidate, pair.relations()).outputs
    return {output.candidate for output in outputs if output.layout is not None}


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("unknown/")])
def test_a_node_stands_on_every_suspect_line(name: str) -> None:
    lines = suspect_lines(name)
    found = {
        node.site.line
        for node in load_pair(name).candidate.nodes
        if node.site is not None and node.site.file == str(FOLDER / f"{name}.py")
    }
    assert lines and found.issuperset(lines)
