"""From a build function's name to files, and what goes wrong on the way."""

from pathlib import Path

import pytest
import torch
from torch_graphs import counted

from scalify.capture import capture
from scalify.errors import CaptureFailed
from scalify.ir.mesh import Mesh, RankInt
from scalify.ir.text import load as load_text
from scalify.load.ranks import merge
from scalify.load.torch_export import read
from scalify.load.torch_export.read import read_program

TWO = Mesh(axes=(("tp", 2),))

SOURCE = """
import torch
from torch import nn
import torch.distributed._functional_collectives as functional


class Head(nn.Module):
    def __init__(self, rank=0, group=None):
        super().__init__()
        self.rank, self.group = rank, group
        self.project = nn.Linear(4, 6 if group is None else 3)
        self.register_buffer("table", torch.zeros(5, dtype=torch.int64), persistent=False)

    def forward(self, x, scale=1.0):
        y = self.project(x)
        if self.group is None:
            return y * scale
        y = functional.all_gather_tensor(y, 1, self.group)
        return y[:, self.rank * 3 : (self.rank + 1) * 3] * scale


def whole():
    return Head(), (torch.zeros(2, 4),), {"scale": 2.0}


def sharded(rank, groups):
    with torch.device("meta"):
        return Head(rank, groups["tp"]), (torch.zeros(2, 4),)


def uneven(rank, groups):
    return (lambda x: x.exp() if rank else x.sin()), (torch.zeros(2),)


def branching():
    return (lambda x: x if x.sum() > 0 else -x), (torch.zeros(2),)


def nothing():
    return None
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "model_under_capture.py"
    path.write_text(SOURCE)
    return path


def test_one_device_gives_an_archive_that_pytorch_reads_too(source: Path, tmp_path: Path) -> None:
    (path,) = capture(f"{source}:whole", tmp_path / "whole.pt")

    assert counted(read(path)) == {"input": 3, "einsum": 1, "add": 1, "constant": 1, "mul": 1}
    program = torch.export.load(str(path))
    assert {name for name, _ in program.named_parameters()} == {"project.weight", "project.bias"}


def test_weights_are_left_out(source: Path, tmp_path: Path) -> None:
    """Also of a module whose weights are real: the archive describes them only."""
    (path,) = capture(f"{source}:whole", tmp_path / "whole.pt")

    assert all(parameter.is_meta for parameter in torch.export.load(str(path)).parameters())


def test_a_mesh_gives_one_graph_for_all_ranks(source: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    (path,) = capture(
        f"{source}:sharded", tmp_path / "all.scg", mesh=TWO, progress=lambda done, of: seen.append((done, of))
    )

    graph = load_text(path)
    assert graph.mesh == TWO
    (part,) = (node for node in graph.nodes if node.op == "slice")
    assert part.attrs["starts"] == (0, RankInt(base=0, terms=((1, 2, 3),)))
    assert part.site is not None
    assert part.site.file == str(source)
    assert seen == [(1, 2), (2, 2)]


def test_per_rank_files_merge_to_the_same_graph(source: Path, tmp_path: Path) -> None:
    files = capture(f"{source}:sharded", tmp_path / "part.pt", mesh=TWO, per_rank=True)
    (whole,) = capture(f"{source}:sharded", tmp_path / "all.scg", mesh=TWO)

    assert [file.name for file in files] == ["part.rank0.pt", "part.rank1.pt"]
    assert [read_program(file)[1].rank for file in files] == [0, 1]
    assert merge({rank: read(file) for rank, file in enumerate(files)}, TWO) == load_text(whole)


def test_ranks_that_run_different_programs_are_told_apart(source: Path, tmp_path: Path) -> None:
    with pytest.raises(CaptureFailed, match="sin on rank 0 but exp on rank 1") as caught:
        capture(f"{source}:uneven", tmp_path / "uneven.scg", mesh=TWO)
    assert "--per-rank" in caught.value.hint


def test_what_pytorch_cannot_export_names_the_users_line(source: Path, tmp_path: Path) -> None:
    line = 1 + next(number for number, text in enumerate(SOURCE.splitlines()) if "x.sum() > 0" in text)

    with pytest.raises(CaptureFailed, match=f"model_under_capture.py:{line}"):
        capture(f"{source}:branching", tmp_path / "branching.pt")
    assert not list(tmp_path.glob("*branching.pt*"))


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("{source}:nothing", "should return"),
        ("{source}:absent", "no function 'absent'"),
        ("{folder}/none.py:build", "no file"),
        ("build", "names no function"),
        ("no_such_package_anywhere:build", "no module"),
    ],
)
def test_a_target_that_is_none_says_so(target: str, what: str, source: Path, tmp_path: Path) -> None:
    with pytest.raises(CaptureFailed, match=what):
        capture(target.format(source=source, folder=tmp_path), tmp_path / "out.pt")


def test_the_process_is_left_as_it_was(source: Path, tmp_path: Path) -> None:
    capture(f"{source}:sharded", tmp_path / "all.scg", mesh=TWO)

    assert not torch.distributed.is_initialized()
