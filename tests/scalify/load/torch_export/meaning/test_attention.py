"""Attention and normalisation give what PyTorch gives."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_graphs import Cases, assert_translates, reals

CASES = Cases()


@CASES.add(reals(2, 4, 5, 6), reals(2, 4, 5, 6), reals(2, 4, 5, 6))
def plain(q: Tensor, k: Tensor, v: Tensor) -> object:
    return (
        F.scaled_dot_product_attention(q, k, v),
        F.scaled_dot_product_attention(q, k, v, is_causal=True),
        F.scaled_dot_product_attention(q, k, v, scale=0.3),
    )


@CASES.add(reals(2, 4, 5, 6), reals(2, 2, 5, 6), reals(2, 2, 5, 6))
def grouped(q: Tensor, k: Tensor, v: Tensor) -> object:
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


@CASES.add(
    reals(2, 4, 5, 6), reals(2, 4, 7, 6), reals(2, 4, 7, 6), reals(5, 7), torch.ones(1, 1, 5, 7).tril().bool()
)
def masked(q: Tensor, k: Tensor, v: Tensor, m: Tensor, b: Tensor) -> object:
    return (F.scaled_dot_product_attention(q, k, v, m), F.scaled_dot_product_attention(q, k, v, b))


@CASES.add(reals(2, 3, 4), reals(4), reals(4))
def layer_norm(x: Tensor, w: Tensor, b: Tensor) -> object:
    return (
        F.layer_norm(x, (4,), w, b),
        F.layer_norm(x, (4,)),
        F.layer_norm(x, (3, 4), eps=0.001),
        F.layer_norm(x, (4,), None, b),
    )


@CASES.add(reals(2, 3, 4), reals(4))
def rms_norm(x: Tensor, w: Tensor) -> object:
    return (F.rms_norm(x, (4,), w, 1e-06), F.rms_norm(x, (4,)), F.rms_norm(x, (3, 4), eps=0.1))


@CASES.add(reals(2, 4, 5), reals(4), reals(4))
def group_norm(x: Tensor, w: Tensor, b: Tensor) -> object:
    return (F.group_norm(x, 2, w, b), F.group_norm(x, 4))


@pytest.mark.parametrize("name", CASES.names)
def test_attention_means_what_pytorch_computes(name: str, tmp_path: Path) -> None:
    assert_translates(*CASES[name], tmp_path)
