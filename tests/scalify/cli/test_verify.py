"""``scalify verify`` from outside: what it prints, with which status it leaves, and what it leaves behind."""

import json
import os
import signal
import subprocess
from pathlib import Path
from time import monotonic, sleep

import pytest
from scalify_commands import command, scalify, scalify_process, told
from scalify_files import perceptron, written
from scalify_workers import ended_within

from scalify.ir.build import GraphBuilder


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graphs")
    written(folder, "one", perceptron())
    written(folder, "four", perceptron(ranks=4))
    written(folder, "wrong", perceptron(ranks=4, reduced=False))
    written(folder, "odd", perceptron(op="vendor.act"))
    written(folder, "odd-four", perceptron(op="vendor.other", ranks=4))
    (folder / "pickle.pt").write_bytes(b"\x80\x02}q\x00.")
    return folder


def test_a_proof_leaves_with_0_and_says_under_which_assumptions(files: Path):
    left = scalify_process("verify", files / "one.scg", files / "four.scg")
    assert (left.code, left.stderr) == (0, "")
    assert left.stdout.startswith("PROVED: the outputs are equal over the reals\n")
    for needed in ("layers.0.up: dimension 1 sharded over tp", "y: replicated", "by the clock"):
        assert needed in left.stdout


def test_a_refutation_leaves_with_3(files: Path):
    left = scalify("verify", files / "one.scg", files / "wrong.scg")
    assert left.code == 3
    assert left.stdout.startswith("REFUTED: there are inputs")
    assert "y: differs" in left.stdout


def test_without_a_search_it_leaves_with_4(files: Path):
    left = scalify("verify", files / "one.scg", files / "wrong.scg", "--search", "0")
    assert left.code == 4
    assert left.stdout.startswith("UNKNOWN: no rule shows")
    assert "y: not proved" in left.stdout


def test_an_op_without_a_meaning_is_named(files: Path):
    left = scalify("verify", files / "odd.scg", files / "odd-four.scg")
    assert left.code == 4
    assert "operations have no meaning" in left.stdout
    assert "vendor.other" in left.stdout
    assert "--define OP=GRAPH" in left.stdout


def test_the_file_says_what_standard_output_says(files: Path, tmp_path: Path):
    saved = tmp_path / "result.json"
    left = scalify("verify", files / "one.scg", files / "wrong.scg", "--format", "json", "-o", saved)
    assert left.code == 3
    assert json.loads(left.stdout) == json.loads(saved.read_text())
    assert json.loads(left.stdout)["verdict"] == "refuted"


def test_explain_prints_the_report_again(files: Path, tmp_path: Path):
    saved = tmp_path / "result.json"
    first = scalify("verify", files / "one.scg", files / "four.scg", "-o", saved, "-v")
    again = scalify("explain", saved)
    assert again.code == 0
    assert again.stdout == first.stdout


@pytest.mark.parametrize("option", ["--no-memo", "--no-partition"])
def test_neither_memo_nor_partition_changes_the_verdict(option: str, files: Path):
    assert scalify("verify", files / "one.scg", files / "four.scg", option).code == 0
    assert scalify("verify", files / "one.scg", files / "wrong.scg", option).code == 3


def test_stated_relations_go_before_inferred_ones(files: Path, tmp_path: Path):
    stated = tmp_path / "relations.toml"
    stated.write_text('[inputs."layers.0.up"]\nshard = { dim = 1, axes = ["tp"] }\n')
    left = scalify("verify", files / "one.scg", files / "four.scg", "--relations", stated)
    assert left.code == 0
    assert "layers.0.up: dimension 1 sharded over tp (stated)" in left.stdout


def test_relations_that_do_not_fit_are_the_users_error(files: Path, tmp_path: Path):
    stated = tmp_path / "relations.toml"
    stated.write_text("[inputs.nothing]\nreplicated = true\n")
    told(scalify("verify", files / "one.scg", files / "four.scg", "--relations", stated), "nothing")


def test_files_of_ranks_may_be_a_folder_a_pattern_or_named_one_by_one(tmp_path: Path):
    baseline = written(tmp_path, "one", perceptron())
    folder = tmp_path / "ranks"
    folder.mkdir()
    build = GraphBuilder("rank")
    build.output("y", build.add("relu", build.input("x", "f32", (4, 8))))
    paths = [written(folder, f"rank{rank}", build.graph()) for rank in range(2)]
    (folder / ".hidden").write_text("no graph")
    shown = {
        scalify("show", folder).stdout,
        scalify("show", folder / "rank*.scg").stdout,
        scalify("show", *paths).stdout,
    }
    assert len(shown) == 1
    assert "rank=2" in shown.pop()
    told(scalify("verify", baseline, tmp_path / "none*.scg"), "no file fits the pattern")
    (tmp_path / "empty").mkdir()
    told(scalify("verify", tmp_path / "empty", baseline), "the folder holds no file")


def test_what_cannot_be_read_is_one_line_and_a_hint(files: Path):
    told(scalify("verify", files / "one.scg", files / "missing.scg"), "missing.scg")
    told(scalify("verify", files / "pickle.pt", files / "one.scg"), "pickle", "capture")


@pytest.mark.parametrize("text", ["4", "4TB", "-1GB", "GB", "10MB", "1e3GB", "9" * 30 + "GB"])
def test_a_size_that_is_none_is_an_error_of_use(text: str, files: Path):
    left = scalify("verify", files / "one.scg", files / "one.scg", "--memory-limit", text)
    assert left.code == 2
    assert left.stdout == ""


def test_out_of_time_is_unknown(files: Path):
    left = scalify_process("verify", files / "one.scg", files / "four.scg", "--time-limit", "0.1")
    assert left.code == 4
    assert "UNKNOWN: the prover was stopped: the time limit of 0.1 s was reached" in left.stdout
    assert "give it more" in left.stdout


def test_out_of_memory_is_unknown_and_the_parent_lives(tmp_path: Path):
    """A file that claims to be text and is mostly a hole."""
    hollow = tmp_path / "hollow.hlo"
    hollow.write_text("HloModule hollow\n" + "\n" * 8000)
    os.truncate(hollow, 600_000_000)
    left = scalify_process("verify", hollow, hollow, "--memory-limit", "256MB")
    assert (left.code, left.stderr) == (4, "")
    assert "the memory limit of 256 MB was reached" in left.stdout


def test_ctrl_c_leaves_no_process_behind(tmp_path: Path):
    large = written(tmp_path, "large", perceptron(layers=1000))
    process = subprocess.Popen(
        command("verify", large, large), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        worker = _child(process.pid)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, stdout) == (130, "")
    assert "error: stopped" in stderr
    assert "Traceback" not in stderr
    assert ended_within(worker, 10.0)


def _child(pid: int) -> int:
    """Once there is one."""
    deadline_s = monotonic() + 20
    while monotonic() < deadline_s:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if found:
            return int(found[0])
        sleep(0.01)
    raise AssertionError("no worker was started")


def test_a_reader_that_goes_away_is_no_error_of_ours(files: Path):
    process = subprocess.Popen(
        command("verify", files / "one.scg", files / "four.scg"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    stderr = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 141
    assert stderr == ""
