"""``scalify verify --ops``: reference functions, which the prover's process runs, and says so."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from scalify_commands import scalify, scalify_process, told

from scalify.ir.build import GraphBuilder
from scalify.ir.graph import Graph
from scalify.ir.text import save

CONFIG = '{"eps": 0.5, "x": {"tensor": 0}}'
DEFINITIONS = """
import os
import torch

print("from the file")
assert "scalify.cli.app" not in __import__("sys").modules, "the command itself runs no code of the user's"

def shifted(x, eps):
    return torch.exp(x) + eps

OPS = {"lab::shifted.default": shifted}
"""


def side(*, fused: bool) -> Graph:
    build = GraphBuilder("side")
    x = build.input("x", "f32", (2, 3))
    if fused:
        y = build.add("opaque", x, dtype="f32", shape=(2, 3), target="lab.shifted.default", config=CONFIG)
    else:
        y = build.add("add", build.add("exp", x), build.constant(0.5, "f32"))
    build.output("y", y)
    return build.graph()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ops")
    save(side(fused=False), folder / "plain.scg")
    save(side(fused=True), folder / "fused.scg")
    (folder / "defs.py").write_text(DEFINITIONS)
    (folder / "wrong.py").write_text(DEFINITIONS.replace("+ eps", "- eps"))
    (folder / "other.py").write_text(DEFINITIONS.replace("(x, eps)", "(x)").replace("+ eps", ""))
    (folder / "ends.py").write_text("raise SystemExit(0)")
    return folder


def test_what_was_run_is_among_the_assumptions(files: Path):
    left = scalify_process(
        "verify", files / "plain.scg", files / "fused.scg", "--ops", files / "defs.py", "--format", "json"
    )
    assert left.code == 0, left.stderr
    notes = json.loads(left.stdout)["notes"]
    digest = sha256((files / "defs.py").read_bytes()).hexdigest()
    assert f"defs.py is code and was run to define operations (sha256 {digest})" in notes
    assert "lab.shifted.default is what shifted of defs.py computes (1 times)" in notes


def test_a_wrong_definition_is_no_proof(files: Path):
    left = scalify("verify", files / "plain.scg", files / "fused.scg", "--ops", files / "wrong.py")
    assert left.code in (3, 4)
    assert "was run to define operations" in " ".join(left.stdout.split())


def test_a_definition_that_does_not_fit_is_told(files: Path):
    left = scalify("verify", files / "plain.scg", files / "fused.scg", "--ops", files / "other.py")
    assert left.code == 4
    assert "the definition of lab.shifted.default does not fit" in " ".join(left.stdout.split())


def test_a_file_that_ends_its_process_is_an_error_of_use(files: Path):
    left = scalify("verify", files / "plain.scg", files / "fused.scg", "--ops", files / "ends.py")
    told(left, "ends.py ends the process that runs it")


def test_help_says_that_it_is_code():
    left = scalify("verify", "--help", columns=200)
    assert "code, which the prover RUNS" in left.stdout
