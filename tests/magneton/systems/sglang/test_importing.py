"""What SGLang needs to be importable on a processor, against stand-ins for what it would import.

Each case runs in an interpreter of its own: modules, operators and the path are a process's.
"""

import subprocess
import sys
from pathlib import Path

import pytest

# torchvision as its CUDA build behaves beside a CPU build of torch: it registers meta kernels for operators
# that it could not load, which torch refuses where nobody has declared them.
NEEDS_OPERATORS = """
import torch
import torchvision.part
@torch.library.register_fake("torchvision::nms")
def nms(dets, scores, threshold):
    return dets.new_empty(1)
@torch.library.register_fake("torchvision::qnms")
def qnms(dets, scores, threshold):
    return dets.new_empty(1)
"""
PLATFORM = """
import os
from importlib.metadata import entry_points
from magneton.systems.sglang.importing import offer_platform, prepare_import
"""


def run(program: str, *places: Path) -> subprocess.CompletedProcess[str]:
    paths = ":".join(map(str, places))
    return subprocess.run(
        [sys.executable, "-c", f"import sys\nsys.path[:0] = {paths!r}.split(':')\n{program}"],
        capture_output=True,
        text=True,
        check=False,
    )


def said(program: str, *places: Path) -> str:
    ran = run(program, *places)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


@pytest.fixture
def torchvision(tmp_path: Path) -> Path:
    """A folder with a stand-in that fails as the real one does, and counts how often it is run."""
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "part.py").write_text("print('part')\n")
    (package / "__init__.py").write_text(NEEDS_OPERATORS)
    return tmp_path


def test_the_platform_is_found_as_anybodys_is():
    found = said(
        f"{PLATFORM}offer_platform()\n"
        "(found,) = entry_points(group='sglang.srt.platforms')\n"
        "print(found.name == os.environ['SGLANG_PLATFORM'], found.value)"
    )
    assert found == "True magneton.systems.sglang.platform:activate"


def test_nothing_of_it_is_left_behind(tmp_path: Path):
    where = said(
        f"import tempfile\ntempfile.tempdir = {str(tmp_path)!r}\n{PLATFORM}offer_platform()\n"
        "print(len(os.listdir(tempfile.tempdir)))"
    )
    assert where == "1"
    assert not list(tmp_path.iterdir())


def test_on_a_board_sglang_chooses_its_own_platform(tmp_path: Path):
    (tmp_path / "torchvision.py").touch()
    found = said(
        f"{PLATFORM}prepare_import('cuda:0')\n"
        "print(len(entry_points(group='sglang.srt.platforms')), os.environ.get('SGLANG_PLATFORM'))",
        tmp_path,
    )
    assert found == "0 None"


IMPORT = """
from magneton.systems.sglang.importing import make_torchvision_importable
make_torchvision_importable()
import torch, torchvision
print(torchvision.__file__, torch.ops.torchvision.nms.default is not None)
"""


def test_torchvision_without_its_kernels_is_imported_all_the_same(torchvision: Path):
    without = run("import torchvision", torchvision)
    assert "torchvision::nms does not exist" in without.stderr

    first, second, place = said(IMPORT, torchvision).splitlines()
    assert (first, second) == ("part", "part")  # the half that was imported before the failure is run anew
    assert place == f"{torchvision / 'torchvision' / '__init__.py'} True"


def test_torchvision_that_can_be_imported_is_left_alone(tmp_path: Path):
    (tmp_path / "torchvision.py").write_text("print('once')\n")
    words = said(
        "import torch\nfrom magneton.systems.sglang.importing import *\nmake_torchvision_importable()\n"
        "print(hasattr(torch.ops.torchvision, 'nms'))",
        tmp_path,
    )
    assert words.splitlines() == ["once", "False"]


def test_torchvision_that_fails_for_another_reason_is_told(tmp_path: Path):
    (tmp_path / "torchvision.py").write_text("raise RuntimeError('no such luck')\n")
    ran = run(IMPORT, tmp_path)
    assert ran.returncode != 0
    assert "no such luck" in ran.stderr
