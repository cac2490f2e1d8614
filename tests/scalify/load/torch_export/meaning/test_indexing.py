"""Reads and writes where data says give what PyTorch gives."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_graphs import Cases, assert_translates, integers, reals

CASES = Cases()


@CASES.add(reals(7, 3), integers(0, 7, 2, 4))
def embedding(w: Tensor, i: Tensor) -> object:
    return F.embedding(i, w)


@CASES.add(reals(4, 5, 6), integers(0, 4, 3), integers(0, 5, 3))
def index(x: Tensor, i: Tensor, j: Tensor) -> object:
    return (x[i], x[:, j], x[i, j], x[i[:, None], j], x[i, :, j], x[..., j])


@CASES.add(reals(4, 5), integers(-4, 4, 6))
def negative_indices(x: Tensor, i: Tensor) -> object:
    return (x[i], x[i, i], x[:, i])


@CASES.add(reals(3, 4), integers(0, 4, 2, 5))
def gather(x: Tensor, i: Tensor) -> object:
    return (x.gather(1, i), x.index_select(1, i[0]), torch.take_along_dim(x[:2], i, 1))


@CASES.add(reals(3, 4), torch.stack([torch.randperm(4)[:3] for _ in range(3)]), reals(3, 3))
def scatter(x: Tensor, i: Tensor, s: Tensor) -> object:
    return (x.scatter(1, i, s), x.scatter_add(1, i, s), x.scatter(1, i, 2.0))


@CASES.add(reals(5, 5), torch.tensor([0, 3, 4]), reals(3, 5))
def index_put(x: Tensor, i: Tensor, v: Tensor) -> object:
    return (
        x.index_put((i,), v),
        x.index_put((i,), v, accumulate=True),
        torch.index_add(x, 0, i, v),
        torch.index_copy(x, 0, i, v),
        x.index_put((i, i), v[0, 0]),
    )


@CASES.add(integers(0, 5, 3, 2))
def one_hot(i: Tensor) -> object:
    return F.one_hot(i, 5)


@CASES.add(reals(3, 4), reals(3, 2))
def slice_scatter(x: Tensor, s: Tensor) -> object:
    return (torch.slice_scatter(x, s, 1, 1, 3), torch.select_scatter(x, s[:, 0], 1, -1))


@pytest.mark.parametrize("name", CASES.names)
def test_indexing_means_what_pytorch_computes(name: str, tmp_path: Path) -> None:
    assert_translates(*CASES[name], tmp_path)
