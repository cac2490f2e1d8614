"""``scalify capture`` from outside."""

from pathlib import Path

import pytest
from scalify_commands import scalify, told

MODULE = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(8, 16, bias=False, device="meta")

    def forward(self, x):
        return torch.relu(self.up(x))

def build():
    return Model(), (torch.empty(4, 8, device="meta"),)

def build_on_ranks(rank, groups):
    return build()
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model.py"
    path.write_text(MODULE)
    return path


def test_a_captured_model_is_proved_equal_to_itself(module: Path, tmp_path: Path):
    graph = tmp_path / "model.pt"
    left = scalify("capture", f"{module}:build", "-o", graph)
    assert (left.code, left.stdout, left.stderr) == (0, "", f"wrote {graph}\n")
    assert scalify("verify", graph, graph).code == 0


def test_gradients_are_outputs_if_asked(module: Path, tmp_path: Path):
    graph = tmp_path / "step.scg"
    left = scalify("capture", f"{module}:build", "-o", graph, "--backward")
    assert left.code == 0, left.stderr
    assert "grad." in graph.read_text()
    assert scalify("verify", graph, graph).code == 0


def test_a_step_that_asks_for_gradients_itself_is_told(tmp_path: Path):
    source = tmp_path / "step.py"
    source.write_text(
        "import torch\n\n"
        "def build():\n"
        "    def step(x):\n"
        "        return torch.autograd.grad(x.square().sum(), [x])\n"
        "    return step, (torch.zeros(2, requires_grad=True),)\n"
    )
    left = scalify("capture", f"{source}:build", "-o", tmp_path / "step.scg")
    assert left.code == 0, left.stderr
    assert left.stderr.startswith("recorded below autograd")


def test_every_rank_has_a_file_of_its_own_if_asked(module: Path, tmp_path: Path):
    left = scalify(
        "capture", f"{module}:build_on_ranks", "-o", tmp_path / "m.pt", "--mesh", "tp=2", "--per-rank"
    )
    assert left.code == 0, left.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"m.rank0.pt", "m.rank1.pt"}
    assert "tp=2" in scalify("show", tmp_path).stdout


def test_what_cannot_be_captured_is_the_users_error(module: Path, tmp_path: Path):
    told(scalify("capture", f"{module}:nothing", "-o", tmp_path / "m.pt"), "nothing")
    assert scalify("capture", f"{module}:build", "-o", tmp_path / "m.pt", "--mesh", "tp").code == 2
