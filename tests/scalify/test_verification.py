"""The library call: files or graphs in, a verdict out."""

from pathlib import Path

import pytest
from scalify_files import perceptron, written

import scalify
from scalify.errors import InvalidGraph
from scalify.verdict import Proved, Reason, Refuted, Unknown
from scalify.verification import Problem, verification


def test_graphs_and_their_files_get_the_same_verdict(tmp_path: Path):
    one, four = perceptron(), perceptron(ranks=4)
    paths = written(tmp_path, "one", one), written(tmp_path, "four", four)
    for baseline, candidate in ((one, four), paths, (str(paths[0]), [paths[1]])):
        verdict = scalify.verify(baseline, candidate)
        assert isinstance(verdict, Proved)
        assert [output.layout for output in verdict.outputs] == ["replicated"]


def test_a_mistake_is_refuted_and_without_a_search_not_proved():
    pair = perceptron(), perceptron(ranks=4, reduced=False)
    assert isinstance(scalify.verify(*pair), Refuted)
    verdict = verification(*pair).verdict
    assert isinstance(verdict, Unknown)
    assert verdict.reason is Reason.UNPROVED


def test_a_program_is_proved_equal_to_itself():
    assert isinstance(scalify.verify(perceptron(ranks=2), perceptron(ranks=2)), Proved)


def test_what_is_assumed_is_said_before_anything_is_proved():
    heard: list[str] = []

    def posed(problem: Problem) -> None:
        heard.extend(relation.name for relation in problem.relations.inputs)

    def progress(done: int, total: int) -> None:
        heard.append(f"{done}/{total}")

    verification(perceptron(layers=2), perceptron(layers=2, ranks=2), posed=posed, progress=progress)
    assert heard[0] == "x"
    assert heard[-1].partition("/")[0] == heard[-1].partition("/")[2]


def test_a_file_that_is_missing_is_the_users_error(tmp_path: Path):
    with pytest.raises(InvalidGraph, match=r"nowhere\.scg"):
        scalify.verify(tmp_path / "nowhere.scg", perceptron())
