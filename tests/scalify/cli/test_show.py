"""``scalify show``: a graph in short, or the whole of it."""

import json
from pathlib import Path

import pytest
from scalify_commands import scalify, told
from scalify_files import perceptron, written

from scalify.ir.text import parse

SHOWN = """\
perceptron
  nodes      15, 15 of them with a line of source
  ranks      4 ranks (tp=4)
  ops        7 input, 6 einsum, 3 relu, 3 all_reduce

Inputs
  - x: f32[4, 8] (input)
  - 3 layers.*.up: f32[8, 8] (parameter)
  - 3 layers.*.down: f32[8, 8] (parameter)

Outputs
  - y: f32[4, 8]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path, "four", perceptron(ranks=4, layers=3))


def test_in_short(path: Path):
    expected = SHOWN.replace("15", str(7 + 6 + 3 + 3))
    assert scalify("show", path).stdout == expected


def test_the_text_form_reads_back(path: Path):
    assert parse(scalify("show", path, "--text").stdout) == perceptron(ranks=4, layers=3)


def test_for_programs(path: Path):
    content = json.loads(scalify("show", path, "--format", "json").stdout)
    assert (content["schema"], content["version"]) == ("scalify.contents", 1)
    assert content["inputs"][0] == {"name": "x", "dtype": "f32", "shape": [4, 8], "role": "input"}
    assert content["ops"][0] == {"op": "input", "count": 7, "has_meaning": True}


def test_what_has_no_meaning_is_set_apart(tmp_path: Path):
    left = scalify("show", written(tmp_path, "odd", perceptron(op="vendor.act")))
    assert "no meaning 1 vendor.act" in left.stdout


def test_what_is_no_graph_is_the_users_error(tmp_path: Path):
    (tmp_path / "x.scg").write_text("hello\n")
    told(scalify("show", tmp_path / "x.scg"), "not a graph")
