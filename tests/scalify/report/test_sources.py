"""A graph may name any file: only lines of plain source are shown."""

import os
from pathlib import Path

import pytest

from scalify.ir.graph import Site
from scalify.report.sources import MAX_FILE_BYTES, around, source_lines


def shown(path: Path, line: int = 2) -> str | None:
    site = Site(str(path), line, "forward")
    return source_lines([site]).get(f"{path}:{line}")


def test_the_line_is_shown_with_its_indent(tmp_path: Path):
    path = tmp_path / "model.py"
    path.write_text("def f():\n\treturn g(x)  \n")
    assert shown(path) == "    return g(x)"


def test_around_a_line_are_two_before_and_two_after():
    assert [site.line for site in around(Site("model.py", 9))] == [7, 8, 9, 10, 11]
    assert [site.line for site in around(Site("model.py", 1))] == [1, 2, 3]


@pytest.mark.parametrize("line", [-1, 0, 3, 10**9])
def test_a_line_that_is_not_there_is_not_shown(line: int, tmp_path: Path):
    path = tmp_path / "model.py"
    path.write_text("one\ntwo\n")
    assert shown(path, line) is None


@pytest.mark.parametrize("name", ["credentials", "id_rsa", "model.py.txt", ".env"])
def test_what_is_not_called_like_source_is_not_read(name: str, tmp_path: Path):
    path = tmp_path / name
    path.write_text("one\nsecret\n")
    assert shown(path) is None


def test_a_file_that_is_not_there_or_has_no_possible_name_is_no_error(tmp_path: Path):
    assert shown(tmp_path / "model.py") is None
    assert source_lines([Site("x\0.py", 1)]) == {}


def test_a_pipe_or_a_folder_keeps_nobody_waiting(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "folder.py").mkdir()
    assert shown(tmp_path / "pipe.py") is None
    assert shown(tmp_path / "folder.py") is None


def test_a_huge_file_is_not_read_and_a_long_line_is_cut(tmp_path: Path):
    long, huge = tmp_path / "long.py", tmp_path / "huge.py"
    long.write_text("\n" + "x" * 10_000)
    huge.write_bytes(b"\n" + b"x" * MAX_FILE_BYTES)
    assert shown(long) == "x" * 400
    assert shown(huge) is None
