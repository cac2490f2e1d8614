"""Reductions, orders and losses give what PyTorch gives."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_graphs import Cases, assert_translates, booleans, integers, reals

CASES = Cases()


@CASES.add(reals(2, 3, 4))
def sums(x: Tensor) -> object:
    return (
        x.sum(),
        x.sum(0),
        x.sum((0, 2), keepdim=True),
        x.mean(-1),
        x.mean(),
        x.amax(1),
        x.amin((0, 1)),
        x.prod(1),
    )


@CASES.add(reals(3, 4))
def spreads(x: Tensor) -> object:
    return (x.var(-1), x.var(-1, unbiased=False, keepdim=True), x.std(0), *torch.var_mean(x, 1, correction=0))


@CASES.add(reals(3, 4))
def extremes(x: Tensor) -> object:
    return (*x.max(1), *x.min(0, keepdim=True), x.max(), x.argmax(), x.argmax(1), x.argmin(0, keepdim=True))


@CASES.add(booleans(3, 4))
def predicates(b: Tensor) -> object:
    return (b.any(), b.all(), b.any(1), b.all(0, keepdim=True))


@CASES.add(reals(3, 4), integers(0, 5, 6))
def running(x: Tensor, i: Tensor) -> object:
    return (x.cumsum(1), i.cumsum(0), x.cumprod(0), torch.diff(x), torch.diff(x, dim=0, prepend=x[:1]))


@CASES.add(reals(3, 4))
def softmaxes(x: Tensor) -> object:
    return (
        x.softmax(-1),
        x.log_softmax(0),
        torch.logsumexp(x, 1),
        torch.logsumexp(x, (0, 1)),
        x.float().softmax(-1, dtype=torch.float64) * 0,
    )


@CASES.add(reals(3, 4))
def norms(x: Tensor) -> object:
    return (x.norm(), torch.linalg.vector_norm(x, dim=-1), F.normalize(x, dim=-1))


@CASES.add(reals(5, 4))
def orders(x: Tensor) -> object:
    return (*x.sort(-1), *x.sort(0, descending=True), x.argsort(1), *x.topk(2), *x.topk(2, 0, largest=False))


@CASES.add(reals(6, 4), integers(0, 4, 6))
def losses(x: Tensor, t: Tensor) -> object:
    return (
        F.cross_entropy(x, t),
        F.cross_entropy(x, t, reduction="none"),
        F.cross_entropy(x, t, ignore_index=2, reduction="sum"),
        F.nll_loss(x.log_softmax(-1), t),
        F.nll_loss(x.log_softmax(-1), t, ignore_index=1),
        F.mse_loss(x, x * 2),
    )


@CASES.add(reals(2, 4, 3), integers(0, 4, 2, 3))
def loss_of_sequences(x: Tensor, t: Tensor) -> object:
    return F.cross_entropy(x, t)


@pytest.mark.parametrize("name", CASES.names)
def test_reduction_means_what_pytorch_computes(name: str, tmp_path: Path) -> None:
    assert_translates(*CASES[name], tmp_path)
