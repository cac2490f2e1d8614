"""Witnesses in files: run again by whoever gets them, and refused where they are not what they say."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scalify_commands import scalify, told
from scalify_files import perceptron, written

Edit = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("witness")
    one = written(folder, "one", perceptron())
    wrong = written(folder, "wrong", perceptron(ranks=4, reduced=False))
    written(folder, "right", perceptron(ranks=4))
    left = scalify("verify", one, wrong, "--witness", folder / "w.json", "-o", folder / "result.json")
    assert left.code == 3
    return folder


def test_a_witness_shows_the_difference_again(folder: Path):
    left = scalify("replay", folder / "w.json")
    assert left.code == 3
    assert left.stdout.startswith("REFUTED")
    kept = json.loads((folder / "w.json").read_text())["witness"]["difference"]
    assert f"{kept['expected']:.6g}" in left.stdout
    assert "is not the file" not in left.stdout


def test_a_program_that_was_mended_agrees_on_it(folder: Path):
    left = scalify("replay", folder / "w.json", folder / "one.scg", folder / "right.scg")
    assert left.code == 0
    assert "proves nothing of others" in " ".join(left.stdout.split())


def test_another_file_is_told(folder: Path):
    other = written(folder, "other", perceptron(ranks=2, reduced=False))
    left = scalify("replay", folder / "w.json", folder / "one.scg", other)
    assert left.code == 3
    assert "is not the file that" in " ".join(left.stdout.split())


def test_a_result_says_where_the_witness_is(folder: Path):
    assert json.loads((folder / "result.json").read_text())["witness_file"] == str(folder / "w.json")


def drop(*path: str) -> Edit:
    def edit(content: dict[str, Any]) -> None:
        for key in path[:-1]:
            content = content[key]
        del content[path[-1]]

    return edit


def put(value: object, *path: str | int) -> Edit:
    def edit(content: Any) -> None:
        for key in path[:-1]:
            content = content[key]
        content[path[-1]] = value

    return edit


HOSTILE: dict[str, Edit] = {
    "another schema": put("scalify.result", "schema"),
    "a later version": put(99, "version"),
    "no witness": drop("witness"),
    "a field too many": put(1, "witness", "more"),
    "an unknown family": put("os.system", "witness", "draw", "family"),
    "a seed that is text": put("0", "witness", "draw", "seed"),
    "a seed below zero": put(-1, "witness", "draw", "seed"),
    "a domain without end": put(1 << 80, "witness", "given", 0, "domain", "size"),
    "a domain of nothing": put(0, "witness", "given", 0, "domain", "size"),
    "edges without end": put([0.0] * 1000, "witness", "given", 0, "domain", "edges"),
    "another input": put("nothing", "witness", "given", 0, "name"),
    "another shape": put([1, 2], "witness", "given", 0, "shape"),
    "another digest": put("0" * 64, "witness", "given", 0, "sha256"),
    "a shape without end": put([1 << 40, 1 << 40], "witness", "given", 0, "shape"),
    "a shape of many dimensions": put([1] * 5000, "witness", "given", 0, "shape"),
    "inputs without end": lambda content: content["witness"]["given"].extend([{}] * 20_000),
    "values that are lists of lists": put([[[[]]]], "witness", "given", 0, "values"),
    "edges that are no numbers": put([float("nan"), float("inf")], "witness", "given", 0, "domain", "edges"),
    "a file that is no program": put([{"path": "/dev/null", "sha256": None}], "candidate"),
    "a folder": put([{"path": "/", "sha256": None}], "candidate"),
    "relations that are none": put("[mesh", "relations"),
    "a file that is not there": put([{"path": "nowhere.scg", "sha256": None}], "baseline"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_was_tampered_with_is_refused(name: str, folder: Path, tmp_path: Path):
    content = json.loads((folder / "w.json").read_text())
    HOSTILE[name](content)
    hostile = tmp_path / "w.json"
    hostile.write_text(json.dumps(content))
    told(scalify("replay", hostile))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"schema": NaN}'])
def test_what_is_no_witness_at_all_is_refused(content: bytes, tmp_path: Path):
    hostile = tmp_path / "w.json"
    hostile.write_bytes(content)
    told(scalify("replay", hostile))
    told(scalify("replay", tmp_path / "missing.json"), "missing.json")
