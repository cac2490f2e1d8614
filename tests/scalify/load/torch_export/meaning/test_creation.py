"""Tensors made from nothing give what PyTorch gives."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch_graphs import Cases, assert_translates, reals

CASES = Cases()


@CASES.add(reals(5))
def counters(x: Tensor) -> object:
    return (
        torch.arange(5) + x,
        torch.arange(2, 12, 2) * x,
        torch.arange(0.0, 1.0, 0.2, dtype=x.dtype) + x,
        torch.linspace(0, 1, 5, dtype=x.dtype) * x,
    )


@CASES.add(reals(3))
def fills(x: Tensor) -> object:
    return (
        torch.zeros(3, dtype=x.dtype) + x,
        torch.ones_like(x),
        torch.full((3,), 2.5, dtype=x.dtype) * x,
        x.new_zeros(2),
        x.new_ones(2),
        torch.full_like(x, -1),
        torch.eye(3, dtype=x.dtype) * x,
    )


@CASES.add(reals(4, 4))
def causal_mask(x: Tensor) -> object:
    return torch.triu(torch.full((4, 4), float("-inf"), dtype=x.dtype), 1) + x


@pytest.mark.parametrize("name", CASES.names)
def test_creation_means_what_pytorch_computes(name: str, tmp_path: Path) -> None:
    assert_translates(*CASES[name], tmp_path)
