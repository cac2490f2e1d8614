"""Which lines led to an operator."""

import importlib
from inspect import currentframe
from pathlib import Path
from types import FrameType

import pytest
import torch

from magneton.profile.model import StackId
from magneton.record.torch.stacks import Stacks


def inner(stacks: Stacks, outermost: FrameType | None) -> StackId:
    return stacks.here(outermost)


def outer(stacks: Stacks, outermost: FrameType | None) -> StackId:
    return inner(stacks, outermost)  # from outer


def test_frames_are_outermost_first_with_the_line_itself():
    stacks = Stacks()
    stack_id = outer(stacks, currentframe())
    frames = stacks.rows[stack_id].frames
    assert [frame.function for frame in frames] == [
        "test_frames_are_outermost_first_with_the_line_itself",
        "outer",
        "inner",
    ]
    assert frames[1].code == "return inner(stacks, outermost)  # from outer"
    assert __file__.endswith(frames[1].file)
    assert Path(__file__).read_text().splitlines()[frames[1].line - 1].strip() == frames[1].code


def test_without_an_outermost_frame_the_walk_ends_with_the_stack():
    stacks = Stacks()
    frames = stacks.rows[outer(stacks, None)].frames
    assert len(frames) > 3
    assert frames[-1].function == "inner"


def test_a_file_is_told_from_the_folder_it_was_imported_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package = tmp_path / "elsewhere" / "somebodys_package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def call(function):\n    return function()\n")
    monkeypatch.syspath_prepend(str(package.parent))
    call = importlib.import_module("somebodys_package").call
    stacks = Stacks()
    here = currentframe()
    (frame, *_) = [
        frame for frame in stacks.rows[call(lambda: stacks.here(here))].frames if frame.function == "call"
    ]
    assert frame.file == str(Path("somebodys_package", "__init__.py"))
    assert frame.code == "return function()"


def test_equal_stacks_are_one():
    stacks = Stacks()
    here = currentframe()
    ids = [outer(stacks, here) for _ in range(3)]
    other = outer(stacks, here)
    assert len(set(ids)) == 1
    assert other != ids[0]
    assert len(stacks.rows) == 2


def test_the_framework_is_left_out():
    stacks, found = Stacks(), list[StackId]()
    here = currentframe()

    class Hooked(torch.nn.Module):
        def forward(self) -> None:
            found.append(outer(stacks, here))

    torch.nn.Sequential(Hooked())  # builds like any module
    Hooked()()
    files = [frame.file for frame in stacks.rows[found[0]].frames]
    assert len(set(files)) == 1
    assert __file__.endswith(files[0])
    assert len(files) == 4


def test_two_instructions_of_one_line_are_one_stack():
    stacks = Stacks()
    here = currentframe()
    one, other = outer(stacks, here), outer(stacks, here)
    assert one == other
