import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from magneton.errors import MagnetonError
from magneton.system import SystemSpec, parse_system
from magneton.systems.callable import CallableSystem
from magneton.systems.outputs import Array, finish_outputs
from magneton.systems.running import Facts, Setup
from magneton.workload import CALL, Workload

HEAD = "import torch\nfrom torch import nn\n"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    threads, path = torch.get_num_threads(), list(sys.path)
    yield
    torch.set_num_threads(threads)
    sys.path[:] = path


def load(folder: Path, body: str, *, seed: int = 0) -> tuple[CallableSystem, Facts]:
    path = folder / "mine.py"
    path.write_text(HEAD + body)
    spec = parse_system(f"{path}:build")
    assert isinstance(spec, SystemSpec)
    system = CallableSystem()
    workload = Workload(seed=seed)
    facts = system.load(
        Setup(options=spec.options, model_folder=None, workload=workload, device="cpu", threads=1)
    )
    return system, facts


def run(system: CallableSystem) -> Mapping[str, Array]:
    system.rewind(CALL)
    return finish_outputs(system.step(CALL))


MODULE = """
def build():
    return nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5)), (torch.randn(2, 4),)
"""

FUNCTION = """
def build():
    layer, total = nn.Linear(4, 3), torch.zeros(2, 4)
    def step(x, *, scale):
        total.add_(x)
        x.mul_(2)
        return {"y": layer(total) * scale, "sum": x.sum().item()}
    return step, [torch.ones(2, 4)], {"scale": torch.tensor(2.0)}
"""

TRAINING = """
def build():
    layer = nn.BatchNorm1d(4)
    def step(x):
        loss = layer(x).square().sum()
        loss.backward()
        return loss, layer.weight.grad.clone(), layer.running_mean.clone()
    return step, (torch.randn(8, 4),)
"""


def test_a_module_is_called_with_its_arguments(tmp_path: Path):
    system, facts = load(tmp_path, MODULE)
    assert system.phases() == (CALL,)
    assert run(system)["output"].shape == (2, 3)
    assert facts.grad_mode == "grad"
    assert facts.versions["torch"] == torch.__version__
    roots = system.roots()
    assert isinstance(roots[""], nn.Sequential)
    assert {name: tensor.shape for name, tensor in roots["input"].items()} == {"input": (2, 4)}


def test_a_function_is_called_with_arguments_and_keywords(tmp_path: Path):
    system, _ = load(tmp_path, FUNCTION)
    outputs = run(system)
    assert outputs["output.y"].shape == (2, 3)
    assert outputs["output.sum"] == 16.0
    roots = system.roots()
    assert isinstance(roots["layer"], nn.Linear)
    assert set(roots["input"]) == {"total", "x", "scale"}


@pytest.mark.parametrize("body", [MODULE, FUNCTION, TRAINING])
def test_repeated_calls_are_the_same_to_the_bit(tmp_path: Path, body: str):
    """Random numbers, overwritten arguments, buffers and gradients are as they were."""
    system, _ = load(tmp_path, body)
    first = run(system)
    for _ in range(3):
        again = run(system)
        assert again.keys() == first.keys()
        for name, array in again.items():
            np.testing.assert_array_equal(array, first[name])


def test_arguments_made_in_inference_mode_are_put_back(tmp_path: Path):
    system, _ = load(
        tmp_path,
        "def build():\n    with torch.inference_mode():\n        x = torch.ones(2)\n"
        "    return torch.inference_mode()(lambda x: x.add_(1).clone()), (x,)\n",
    )
    assert run(system)["output"].tolist() == run(system)["output"].tolist() == [2, 2]


def test_the_seed_makes_what_is_built(tmp_path: Path):
    outputs = [run(load(tmp_path, MODULE, seed=seed)[0])["output"] for seed in (1, 1, 2)]
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert not np.array_equal(outputs[0], outputs[2])


def test_a_function_written_in_c(tmp_path: Path):
    system, _ = load(tmp_path, "def build():\n    return torch.mm, (torch.ones(2, 3), torch.ones(3, 2))\n")
    assert run(system)["output"].tolist() == [[3, 3], [3, 3]]
    assert set(system.roots()["input"]) == {"0", "1"}


def test_a_method_of_a_module_names_the_module(tmp_path: Path):
    body = "def build():\n    layer = nn.Linear(4, 3)\n    return layer.forward, (torch.ones(2, 4),)\n"
    assert isinstance(load(tmp_path, body)[0].roots()[""], nn.Linear)


def test_the_file_may_import_its_neighbours_and_shadow_nothing(tmp_path: Path):
    (tmp_path / "neighbour.py").write_text("WIDTH = 5\n")
    path = tmp_path / "torch.py"  # a user's file may have any name
    path.write_text(
        "from neighbour import WIDTH\nimport sys\nimport numpy\n"
        "def build():\n    return numpy.zeros, (WIDTH,)\n"
    )
    script = (
        "import torch, pathlib\n"
        "from magneton.systems.user_file import user_function\n"
        f"target, args = user_function(pathlib.Path({str(path)!r}), 'build')()\n"
        "print(target(*args).shape, torch.__name__, torch.zeros(1).shape)\n"
    )
    root = str(Path(__file__).parents[3])
    environment = {"PYTHONPATH": root, "PATH": ""}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.stdout == "(5,) torch torch.Size([1])\n", done.stderr


@pytest.mark.parametrize(
    ("body", "message", "hint"),
    [
        ("def biuld(): ...\n", "unknown function in", "did you mean 'biuld'?"),
        ("build = 3\n", "build in", "name of a function"),
        ("def build(:\n", "mine.py:3 failed: SyntaxError", "def build(:"),
        (
            "import nothing_here\ndef build(): ...\n",
            "mine.py:3 failed: ModuleNotFoundError",
            "import nothing_here",
        ),
        ("import sys\nsys.exit(1)\n", "mine.py:4 failed: SystemExit", "sys.exit(1)"),
        ("def build():\n    return 1 / 0\n", "build() in", "ZeroDivisionError: division by zero"),
        ("def build():\n    return 1 / 0\n", "mine.py:4 failed: ZeroDivisionError", "return 1 / 0"),
        ("def build(x):\n    return x\n", "failed: TypeError", "missing 1 required positional argument"),
        ("def build():\n    return 3\n", "returned int", "return (module_or_function, args)"),
        ("def build():\n    return torch.mm, torch.ones(1)\n", "Tensor)", "args a tuple"),
        ("def build():\n    return torch.mm, (), 3\n", ", tuple, int)", "args a tuple"),
        ("def build():\n    return 3, ()\n", "returned (int, tuple)", "module_or_function"),
    ],
)
def test_what_is_wrong_in_a_users_file_is_named_with_its_line(
    tmp_path: Path, body: str, message: str, hint: str
):
    with pytest.raises(MagnetonError) as caught:
        load(tmp_path, body)
    assert message in str(caught.value)
    assert hint in caught.value.hint


def test_a_call_that_fails_names_the_line(tmp_path: Path):
    body = "def step(x):\n    return x @ torch.ones(3)\ndef build():\n    return step, (torch.ones(2),)\n"
    system, _ = load(tmp_path, body)
    with pytest.raises(MagnetonError) as caught:
        run(system)
    assert "mine.py:4 failed: RuntimeError" in str(caught.value)
    assert "return x @ torch.ones(3)" in caught.value.hint


@pytest.mark.parametrize("error", ["MemoryError()", "RuntimeError('CUDA out of memory')"])
def test_running_out_of_memory_is_not_the_files_fault(tmp_path: Path, error: str):
    with pytest.raises((MemoryError, RuntimeError)):
        load(tmp_path, f"def build():\n    raise {error}\n")
