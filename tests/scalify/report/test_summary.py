"""What a result says of the graphs, relations and verdict behind it."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from scalify_files import perceptron, written
from scalify_results import suspect, witness

from scalify.ir.build import GraphBuilder
from scalify.ir.graph import Graph
from scalify.report.result import Axis, Result
from scalify.report.store import load, save
from scalify.report.summary import answered, unanswered
from scalify.verdict import Reason, Refuted, Unknown
from scalify.verification import problem_of, verification


def result_of(folder: Path, baseline: Graph, candidate: Graph) -> Result:
    files = (str(written(folder, "baseline", baseline)),), (str(written(folder, "candidate", candidate)),)
    return answered(verification(*files), *files)


def test_programs_are_those_of_the_files(tmp_path: Path):
    result = result_of(tmp_path, perceptron(), perceptron(ranks=4))
    path = tmp_path / "candidate.scg"
    (file,) = result.candidate.files
    assert (file.path, file.sha256) == (str(path), sha256(path.read_bytes()).hexdigest())
    assert result.candidate.mesh == (Axis(name="tp", size=4),)
    assert (result.baseline.nodes, result.candidate.nodes) == (6, 7)


def test_a_proof_says_what_it_leans_on(tmp_path: Path):
    result = result_of(tmp_path, perceptron(), perceptron(ranks=4))
    assert (result.verdict, result.reason, result.suspect) == ("proved", None, None)
    assert result.trust is not None
    assert result.trust.rules_version >= 1
    assert not any("cast" in policy for policy in result.trust.policies)


def test_casts_are_counted(tmp_path: Path):
    build = GraphBuilder("cast")
    x = build.input("x", "f32", (4,))
    build.output("y", build.add("cast", build.add("cast", x, dtype="bf16"), dtype="f32"))
    result = result_of(tmp_path, build.graph(), build.graph())
    assert result.trust is not None
    assert any("4 of them" in policy for policy in result.trust.policies)


def test_without_a_proof_nothing_is_leant_on(tmp_path: Path):
    result = result_of(tmp_path, perceptron(), perceptron(ranks=4, reduced=False))
    assert (result.verdict, result.reason, result.trust) == ("unknown", Reason.UNPROVED, None)
    assert [output.layout for output in result.outputs] == [None]


def test_a_refutation_keeps_its_witness_and_its_place(tmp_path: Path):
    one, two = perceptron(), perceptron(ranks=2, reduced=False)
    files = (str(written(tmp_path, "one", one)),), (str(written(tmp_path, "two", two)),)
    unknown = verification(*files)
    outputs, assumptions = unknown.verdict.outputs, unknown.verdict.assumptions
    verdict = Refuted(outputs=outputs, assumptions=assumptions, witness=witness(), suspect=suspect())
    result = answered(replace(unknown, verdict=verdict), *files)
    assert (result.verdict, result.reason, result.trust) == ("refuted", None, None)
    assert (result.witness, result.suspect) == (witness(), suspect())


def test_a_lead_is_kept(tmp_path: Path):
    one, two = perceptron(), perceptron(ranks=2, reduced=False)
    files = (str(written(tmp_path, "one", one)),), (str(written(tmp_path, "two", two)),)
    done = verification(*files)
    verdict = Unknown(reason=Reason.UNPROVED, outputs=(), assumptions=(), lead="half as large, they differ")
    assert answered(replace(done, verdict=verdict), *files).lead == "half as large, they differ"


def test_a_result_of_real_programs_can_be_saved(tmp_path: Path):
    result = result_of(tmp_path, perceptron(), perceptron(ranks=4, reduced=False))
    save(result, tmp_path / "result.json")
    assert load(tmp_path / "result.json") == result


def test_no_assumption_of_the_verdict_is_lost(tmp_path: Path):
    one, two = perceptron(), perceptron(ranks=2)
    files = (str(written(tmp_path, "one", one)),), (str(written(tmp_path, "two", two)),)
    done = verification(*files)
    more = replace(done.verdict, assumptions=(*done.verdict.assumptions, "indices are in range"))
    result = answered(replace(done, verdict=more), *files)
    assert result.notes == (*done.problem.relations.notes, "indices are in range")
    said = {f"{each.input}: {each.text}" for each in result.assumptions} | set(result.notes)
    assert set(more.assumptions) == said


def test_what_was_assumed_stands_even_if_nothing_more_comes(tmp_path: Path):
    files = (
        (str(written(tmp_path, "one", perceptron())),),
        (str(written(tmp_path, "two", perceptron(ranks=2))),),
    )
    result = unanswered(problem_of(*files, None), *files)
    assert result.reason is Reason.KILLED
    assert [each.input for each in result.assumptions] == ["x", "layers.0.up", "layers.0.down"]
    assert [output.layout for output in result.outputs] == [None]
