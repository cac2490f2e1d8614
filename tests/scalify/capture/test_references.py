"""Reference functions define unknown operations at each use; what does not fit is told with the reason."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from scalify import verify
from scalify.capture import captured
from scalify.capture.references import References
from scalify.errors import CaptureFailed
from scalify.ir.graph import Graph
from scalify.verdict import Proved, Unknown
from scalify.verification import verification

LIBRARY = torch.library.Library("scalify_lab", "DEF")
LIBRARY.define("norm(Tensor x, Tensor weight, float eps=1e-3, *, bool centred=False) -> Tensor")
LIBRARY.define("split(Tensor x, int size) -> (Tensor, Tensor)")
LIBRARY.define("stack(Tensor[] parts, ScalarType dtype) -> Tensor")


@torch.library.register_fake("scalify_lab::norm", lib=LIBRARY)
def _norm(x: Tensor, weight: Tensor, eps: float = 1e-3, *, centred: bool = False) -> Tensor:
    return torch.empty_like(x)


@torch.library.register_fake("scalify_lab::split", lib=LIBRARY)
def _split(x: Tensor, size: int) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape[0], size), x.new_empty(x.shape[0], x.shape[1] - size)


@torch.library.register_fake("scalify_lab::stack", lib=LIBRARY)
def _stack(parts: list[Tensor], dtype: torch.dtype) -> Tensor:
    return torch.empty(len(parts), *parts[0].shape, dtype=dtype, device=parts[0].device)


OPERATORS = torch.ops.scalify_lab
DEFINITIONS = """
import torch

def norm(x, weight, eps, centred):
    x = x - x.mean(-1, keepdim=True) if centred else x
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight

def split(x, size):
    return x[:, :size] * 1.0, x[:, size:] * 1.0

def stack(parts, dtype):
    return torch.stack(parts).to(dtype)

OPS = {"scalify_lab::norm.default": norm, "scalify_lab::split": split, "scalify_lab.stack.default": stack}
"""


Forward = Callable[[Tensor], Tensor] | Callable[[Tensor, Tensor], Tensor]


def graph_of(forward: Forward, *shapes: tuple[int, ...]) -> Graph:
    args = tuple(torch.empty(shape, device="meta") for shape in shapes)
    return captured(lambda: (forward, args), name="side")


def written(folder: Path, text: str = DEFINITIONS) -> Path:
    place = folder / "defs.py"
    place.write_text(text)
    return place


def plain(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


@pytest.mark.parametrize(("eps", "is_right"), [(1e-5, True), (1e-4, False)])
def test_a_function_sees_the_arguments_of_each_use(tmp_path: Path, eps: float, is_right: bool) -> None:
    baseline = graph_of(lambda x, w: plain(plain(x, w, 1e-6), w, 1e-5), (2, 8), (8,))
    candidate = graph_of(lambda x, w: OPERATORS.norm(OPERATORS.norm(x, w, 1e-6), w, eps=eps), (2, 8), (8,))
    verdict = verify(baseline, candidate, ops=written(tmp_path))
    assert isinstance(verdict, Proved) is is_right


def test_what_a_call_leaves_out_has_the_operators_own_default(tmp_path: Path) -> None:
    """A default of the function's own would be another one."""
    text = DEFINITIONS.replace("weight, eps, centred", "weight, eps=1.0, centred=False")
    baseline = graph_of(lambda x, w: plain(x, w, 1e-3), (2, 8), (8,))
    candidate = graph_of(lambda x, w: OPERATORS.norm(x, w), (2, 8), (8,))
    assert isinstance(verify(baseline, candidate, ops=written(tmp_path, text)), Proved)


def test_operands_go_to_the_arguments_that_they_were_given_for(tmp_path: Path) -> None:
    """By name, whatever the alphabet says: ``weight`` comes after ``x``, ``centred`` is for words only."""
    baseline = graph_of(lambda w, x: plain(x - x.mean(-1, keepdim=True), w, 1e-3), (8,), (2, 8))
    candidate = graph_of(lambda w, x: OPERATORS.norm(weight=w, x=x, centred=True), (8,), (2, 8))
    assert isinstance(verify(baseline, candidate, ops=written(tmp_path)), Proved)


def test_several_results_and_lists_of_tensors_and_types(tmp_path: Path) -> None:
    def fused(x: Tensor) -> Tensor:
        left, right = OPERATORS.split(x, 4)
        return OPERATORS.stack([right, left], torch.float64)

    baseline = graph_of(lambda x: torch.stack([x[:, 4:], x[:, :4]]).double(), (2, 8))
    verdict = verify(baseline, graph_of(fused, (2, 8)), ops=written(tmp_path))
    assert isinstance(verdict, Proved)
    swapped = graph_of(lambda x: torch.stack([x[:, :4], x[:, 4:]]).double(), (2, 8))
    assert not isinstance(verify(swapped, graph_of(fused, (2, 8)), ops=written(tmp_path)), Proved)


def test_the_verdict_says_that_code_was_run_and_which(tmp_path: Path) -> None:
    place = written(tmp_path)
    graph = graph_of(lambda x, w: OPERATORS.norm(x, w, 1e-6), (2, 8), (8,))
    verdict = verify(graph_of(lambda x, w: plain(x, w, 1e-6), (2, 8), (8,)), graph, ops=place)
    assert isinstance(verdict, Proved)
    digest = References(place).sha256
    said = f"defs.py is code and was run to define operations (sha256 {digest})"
    assert said in verdict.assumptions
    assert "scalify_lab.norm.default is what norm of defs.py computes (1 times)" in verdict.assumptions


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("def norm(x, weight):\n    return x", "unexpected keyword argument 'eps'"),
        ("def norm(x, weight, eps, centred):\n    return x[:1]", "it gives f32[1,8]"),
        ("def norm(x, weight, eps, centred):\n    return x @ weight @ weight", "torch.export cannot export"),
        ("def norm(x, weight, eps, centred):\n    return x.add_(1)", "it writes to its argument"),
        ("def norm(x, weight, eps, centred):\n    return torch.rand_like(x)", "draws random numbers"),
        ("def norm(x, weight, eps, centred):\n    return 3", "it has no result 0"),
    ],
)
def test_a_function_that_does_not_fit_is_told_with_the_reason(tmp_path: Path, body: str, reason: str) -> None:
    place = written(tmp_path, f'import torch\n{body}\nOPS = {{"scalify_lab::norm": norm}}\n')
    graph = graph_of(lambda x, w: OPERATORS.norm(x, w, 1e-6), (2, 8), (8,))
    verdict = verify(graph_of(lambda x, w: plain(x, w, 1e-6), (2, 8), (8,)), graph, ops=place)
    assert isinstance(verdict, Unknown)
    told = [text for text in verdict.missing if text.startswith("the definition of scalify_lab.norm.default")]
    assert len(told) == 1
    assert reason in told[0]


def test_operands_of_dtypes_that_a_definition_does_not_take_are_told(tmp_path: Path) -> None:
    text = """
import torch
def norm(x, weight, eps, centred):
    if x.dtype != weight.dtype:
        raise TypeError("one dtype, please")
    return x * weight
OPS = {"scalify_lab::norm": norm}
"""

    class Mixed(nn.Module):
        def forward(self, x: Tensor, weight: Tensor) -> Tensor:
            return OPERATORS.norm(x, weight, 1e-6)

    args = torch.empty(2, 8, device="meta"), torch.empty(8, device="meta", dtype=torch.bfloat16)
    graph = captured(lambda: (Mixed(), args), name="mixed")
    done = verification(graph, graph, ops=written(tmp_path, text))
    assert any("one dtype, please" in reason for reason in done.problem.refused)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 / 0", "defs.py cannot be run: ZeroDivisionError"),
        ("def", "defs.py cannot be run: SyntaxError"),
        ("raise SystemExit(0)", "ends the process"),
        ("x = 1", "has no table OPS"),
        ('OPS = {"a": 3}', "OPS of defs.py has 'a': 3"),
    ],
)
def test_a_file_that_is_no_table_of_functions_is_the_users_to_put_right(
    tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(CaptureFailed, match=reason):
        References(written(tmp_path, text))


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(CaptureFailed, match="cannot read"):
        References(Path("nowhere.py"))
