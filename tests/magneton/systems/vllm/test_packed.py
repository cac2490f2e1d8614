"""Weights that a kernel has packed away are found again in the model's folder."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from torch import nn

from magneton.systems.vllm.packed import packed_weights

Q, K, UP, DOWN = (
    np.random.default_rng(seed).random((rows, 4), np.float32) for seed, rows in enumerate((4, 2, 6, 5))
)
WEIGHTS = {
    "layers.0.attn.q_proj.weight": Q,
    "layers.0.attn.k_proj.weight": K,
    "layers.0.mlp.up_proj.weight": UP,
    "layers.0.mlp.down_proj.weight": DOWN,
}


def emptied(rows: int) -> nn.Linear:
    """A module as vLLM leaves it when a kernel keeps the weight in a form of its own."""
    module = nn.Linear(4, rows, bias=False)
    module.weight = nn.Parameter(torch.empty(0), requires_grad=False)
    return module


class Model(nn.Module):
    packed_modules_mapping: Mapping[str, list[str]] = {"qk_proj": ["q_proj", "k_proj"]}

    def __init__(self) -> None:
        super().__init__()
        attention = nn.ModuleDict({"qk_proj": emptied(6), "norm": nn.LayerNorm(4)})
        gated = nn.ModuleDict({"up_proj": emptied(6), "down_proj": nn.Linear(4, 5, bias=False)})
        self.layers = nn.ModuleList([nn.ModuleDict({"attn": attention, "mlp": gated})])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Weights of one layer over two files: parts of a merged one lie apart."""
    names = sorted(WEIGHTS)
    for number, part in enumerate((names[:1], names[1:]), 1):
        save_file(
            {name: WEIGHTS[name] for name in part}, tmp_path / f"model-0000{number}-of-00002.safetensors"
        )
    return tmp_path


def test_parts_of_a_merged_weight_come_in_the_order_of_the_models_table(folder: Path):
    found = packed_weights(Model(), folder, torch.float32)
    assert found.keys() == {"layers.0.attn.qk_proj", "layers.0.mlp.up_proj"}
    np.testing.assert_array_equal(found["layers.0.attn.qk_proj"].numpy(), np.concatenate([Q, K]))
    np.testing.assert_array_equal(found["layers.0.mlp.up_proj"].numpy(), UP)


def test_they_have_the_type_that_the_engine_computes_in(folder: Path):
    found = packed_weights(Model(), folder, torch.bfloat16)
    assert {tensor.dtype for tensor in found.values()} == {torch.bfloat16}
    torch.testing.assert_close(
        found["layers.0.mlp.up_proj"], torch.from_numpy(UP).to(torch.bfloat16), rtol=0, atol=0
    )


def test_a_weight_whose_name_or_part_the_folder_lacks_is_left_out(tmp_path: Path):
    """A guess would give an operator a weight that it never saw."""
    save_file(
        {"layers.0.attn.q_proj.weight": Q, "layers.0.mlp.gate.weight": UP}, tmp_path / "model.safetensors"
    )
    assert packed_weights(Model(), tmp_path, torch.float32) == {}


def test_a_model_without_a_table_has_no_merged_weights(folder: Path):
    model = nn.ModuleDict({"layers": Model().layers})
    assert packed_weights(model, folder, torch.float32).keys() == {"layers.0.mlp.up_proj"}


def test_a_module_at_the_top_is_found(tmp_path: Path):
    save_file({"head.weight": UP}, tmp_path / "model.safetensors")
    model = nn.ModuleDict({"head": emptied(6)})
    np.testing.assert_array_equal(packed_weights(model, tmp_path, torch.float32)["head"].numpy(), UP)
