"""Products and convolutions give what PyTorch gives."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_graphs import Cases, assert_translates, reals

CASES = Cases()


@CASES.add(reals(2, 3, 4), reals(5, 4), reals(5))
def linear(x: Tensor, w: Tensor, b: Tensor) -> object:
    return (F.linear(x, w), F.linear(x, w, b), F.linear(x[0, 0], w, b))


@CASES.add(reals(2, 3, 4), reals(2, 4, 5))
def matmul(x: Tensor, y: Tensor) -> object:
    return (x @ y, x[0] @ y[0], x @ y[0], x[0] @ y, x[0, 0] @ y, x @ y[0, :, 0])


@CASES.add(reals(2, 1, 3, 4), reals(1, 5, 4, 2))
def matmul_that_broadcasts(x: Tensor, y: Tensor) -> object:
    return (x @ y, y.mT @ x.mT)


@CASES.add(reals(4), reals(4))
def vectors(x: Tensor, y: Tensor) -> object:
    return (x @ y, torch.dot(x, y), torch.outer(x, y), torch.mv(torch.outer(x, y), x))


@CASES.add(reals(2, 3, 4), reals(2, 4, 5))
def batched(x: Tensor, y: Tensor) -> object:
    return (torch.bmm(x, y), torch.baddbmm(x @ y, x, y, beta=0.5, alpha=2.0))


@CASES.add(reals(5), reals(3, 4), reals(4, 5))
def added(b: Tensor, x: Tensor, y: Tensor) -> object:
    return (torch.addmm(b, x, y), torch.addmm(b, x, y, beta=0, alpha=3), torch.mm(x, y))


@CASES.add(reals(2, 3, 4), reals(2, 4, 5))
def einsum(x: Tensor, y: Tensor) -> object:
    return (
        torch.einsum("bik,bkj->bij", x, y),
        torch.einsum("bik,bkj", x, y),
        torch.einsum("...k,...kj->...j", x[:, 0], y),
    )


@CASES.add(reals(2, 3, 6, 6), reals(4, 3, 3, 3), reals(4))
def convolutions(x: Tensor, w: Tensor, b: Tensor) -> object:
    return (
        F.conv2d(x, w, b, padding=1),
        F.conv2d(x, w, stride=2),
        F.conv2d(x, w, padding="same"),
        F.conv1d(x[:, :, 0], w[:, :, 0], b),
        F.conv2d(x, w, dilation=2, padding=2),
    )


@CASES.add(reals(1, 4, 8), reals(4, 1, 3))
def grouped_convolution(x: Tensor, w: Tensor) -> object:
    return F.conv1d(x, w, groups=4, padding=2)


@pytest.mark.parametrize("name", CASES.names)
def test_contraction_means_what_pytorch_computes(name: str, tmp_path: Path) -> None:
    assert_translates(*CASES[name], tmp_path)
