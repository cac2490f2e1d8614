"""Views, slices and joins give what PyTorch gives."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_graphs import Cases, assert_translates, reals

CASES = Cases()


@CASES.add(reals(2, 3, 4))
def reshapes(x: Tensor) -> object:
    return (x.view(4, 6), x.reshape(-1, 3), x.flatten(1), x.unflatten(2, (2, 2)), x.ravel())


@CASES.add(reals(2, 1, 4))
def squeezes(x: Tensor) -> object:
    return (x.squeeze(1), x.unsqueeze(0), x.unsqueeze(-1), x.squeeze(), x[:, None])


@CASES.add(reals(2, 3, 4))
def permutations(x: Tensor) -> object:
    return (x.permute(2, 0, 1), x.transpose(-1, 0), x.mT, x.movedim(0, 2), x[0].t(), x.swapaxes(0, 1))


@CASES.add(reals(3, 1).expand(3, 4)[:, :1])
def expansions(x: Tensor) -> object:
    return (
        x.expand(2, 3, 4),
        x.expand(-1, 4),
        x.repeat(2, 3),
        x.broadcast_to(3, 4),
        x.tile(2),
        x.expand_as(x),
    )


@CASES.add(reals(4, 5))
def slices(x: Tensor) -> object:
    return (x[1:3], x[:, ::2], x[..., -1], x[-2:], x[0], x.narrow(1, 1, 2), x.select(0, -1), x[1:100])


@CASES.add(reals(5, 4))
def pieces(x: Tensor) -> object:
    return (
        *x.split(2),
        *x.split([1, 3], 1),
        *x.chunk(3),
        *x.unbind(1),
        *x.tensor_split(3),
        *x.tensor_split((1, 3)),
    )


@CASES.add(reals(3, 4), reals(3, 4))
def joins(x: Tensor, y: Tensor) -> object:
    return (
        torch.cat([x, y]),
        torch.cat([x, y], -1),
        torch.stack([x, y]),
        torch.stack([x, y], -1),
        torch.hstack([x, y]),
        torch.vstack([x[0], y[0]]),
    )


@CASES.add(reals(2, 3))
def repeats(x: Tensor) -> object:
    return (x.repeat_interleave(2, 0), x.repeat_interleave(3, dim=1), x.repeat_interleave(2))


@CASES.add(reals(3, 4))
def reversals(x: Tensor) -> object:
    return (x.flip(0), x.flip(0, 1), x.roll(1, 0), x.roll(-2, 1), x.roll(3))


@CASES.add(reals(3, 4))
def pads(x: Tensor) -> object:
    return (F.pad(x, (1, 2)), F.pad(x, (1, 0, 0, 2), value=3.0))


@CASES.add(reals(4, 4))
def triangles(x: Tensor) -> object:
    return (x.tril(), x.triu(1), x.tril(-1), x.diagonal())


@CASES.add(reals(3, 7))
def windows(x: Tensor) -> object:
    return x.unfold(1, 2, 2)


@CASES.add(reals(3))
def identities(x: Tensor) -> object:
    return (x.clone(), x.detach() + 0, x.contiguous(), F.dropout(x, 0.5, training=False))


@CASES.add(reals(3), reals(4))
def grid(x: Tensor, y: Tensor) -> object:
    return torch.meshgrid(x, y, indexing="ij") + torch.meshgrid(x, y, indexing="xy")


@pytest.mark.parametrize("name", CASES.names)
def test_movement_means_what_pytorch_computes(name: str, tmp_path: Path) -> None:
    assert_translates(*CASES[name], tmp_path)
