"""What torch's exporters write is proved against the model, and nothing else is."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from scalify import verify
from scalify.capture import captured
from scalify.load import load
from scalify.load.onnx import read
from scalify.load.onnx.tensors import as_written
from scalify.prove.verify import verify as prove
from scalify.relate.relate import relate
from scalify.verdict import Proved, Reason, Unknown

onnx = pytest.importorskip("onnx", reason="torch's exporters write with the onnx package")
pytest.importorskip("onnxscript", reason="torch's newer exporter needs it")

X = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(1))


class Attention(nn.Module):
    """Two heads of 4, causal, with a table that is no parameter."""

    table: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.q, self.k, self.v, self.o = (nn.Linear(8, 8, bias=False) for _ in range(4))
        self.register_buffer("table", torch.linspace(0.1, 0.9, 8), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x) * self.table
        q, k, v = (part(y).view(2, 6, 2, 4).transpose(1, 2) for part in (self.q, self.k, self.v))
        made = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.o(made.transpose(1, 2).reshape(2, 6, 8))


@pytest.fixture(scope="module")
def model() -> Attention:
    torch.manual_seed(0)
    return Attention().eval()


@pytest.fixture(scope="module")
def files(model: Attention, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports")
    for name, optimize in (("folded", True), ("plain", False)):
        torch.onnx.export(
            model, (X,), folder / f"{name}.onnx", dynamo=True, opset_version=18, optimize=optimize,
            verbose=False, external_data=False,
        )  # fmt: skip
        torch.onnx.export(
            model, (X,), folder / f"old-{name}.onnx", dynamo=False, opset_version=17, input_names=["x"],
            do_constant_folding=optimize,
        )  # fmt: skip
    return folder


@pytest.mark.parametrize("name", ["plain", "old-plain"])
def test_an_export_that_keeps_names_is_proved_from_files(model: Attention, files: Path, name: str) -> None:
    graph = captured(lambda: (model, (X,)), name="attention")
    assert isinstance(verify(graph, files / f"{name}.onnx"), Proved)


@pytest.mark.parametrize("name", ["folded", "old-folded"])
def test_weights_that_lost_their_names_are_known_by_their_values(
    model: Attention, files: Path, name: str
) -> None:
    verdict = verify((model, (X,)), files / f"{name}.onnx")
    assert isinstance(verdict, Proved)
    assert sum("transposed: they have the same values" in text for text in verdict.assumptions) == 4


def test_without_values_they_are_unknown_and_the_way_out_is_told(model: Attention, files: Path) -> None:
    baseline, candidate = captured(lambda: (model, (X,)), name="attention"), load(files / "folded.onnx")
    verdict = prove(baseline, candidate, relate(baseline, candidate))
    assert isinstance(verdict, Unknown)
    assert verdict.reason is Reason.UNRELATED
    assert any("optimize=False" in note for note in candidate.notes)


def test_a_product_that_reads_another_layers_weight_is_not_proved(
    model: Attention, files: Path, tmp_path: Path
) -> None:
    """Its place in the model must not give a weight its name."""
    changed = onnx.load(files / "folded.onnx")
    stored = {tensor.name for tensor in changed.graph.initializer}
    products: list[Any] = [
        node for node in changed.graph.node if node.op_type == "MatMul" and node.input[1] in stored
    ]
    products[0].input[1], products[1].input[1] = products[1].input[1], products[0].input[1]
    place = tmp_path / "swapped.onnx"
    onnx.save(changed, place)
    assert not isinstance(verify((model, (X,)), place), Proved)


def test_nodes_stand_where_the_model_says(files: Path) -> None:
    graph = load(files / "plain.onnx")
    softmax = next(node for node in graph.nodes if node.op == "softmax")
    assert softmax.site is not None
    assert Path(softmax.site.file) == Path(__file__)
    assert {node.scope for node in graph.nodes} >= {"q", "k", "v", "o"}
    older = {node.scope for node in load(files / "old-plain.onnx").nodes}
    assert older >= {"q", "k", "v", "o"}


def test_what_is_saved_with_no_model_is_a_constant(files: Path) -> None:
    """A buffer that is not persistent is no input: PyTorch's own graph holds its values, too."""
    for name in ("plain", "folded"):
        assert "table" not in {node.attrs["name"] for node in load(files / f"{name}.onnx").inputs()}


@pytest.mark.parametrize(
    ("written", "is_exact"),
    [(0.1, True), (1e-5, True), (1 / 3, True), (128**-0.5, True), (0.123456789, False)],
)
def test_a_narrow_float_is_read_as_what_was_written(written: float, is_exact: bool) -> None:
    narrow = float(torch.tensor(written, dtype=torch.float32))
    assert (as_written(narrow) == pytest.approx(written, rel=1e-15)) is is_exact
    assert float(torch.tensor(as_written(narrow), dtype=torch.float32)) == narrow


def test_the_weights_of_another_program_name_nothing(files: Path) -> None:
    data = (files / "folded.onnx").read_bytes()
    other = {"q.weight": torch.randn(8, 8).numpy()}
    names = {str(node.attrs["name"]) for node in read(data, other).inputs()}
    assert "q.weight" not in names
