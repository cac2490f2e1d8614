"""Complex tensors are read as pairs of real numbers, and mean what PyTorch computes."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from scalify.capture import captured
from scalify.ir.evaluate import evaluate
from scalify.ir.graph import Graph

X = torch.randn(2, 3, 4, 6, generator=torch.Generator().manual_seed(0))


def turns() -> Tensor:
    angle = torch.outer(torch.arange(3).float(), torch.tensor([1.0, 0.5, 0.25]))
    return torch.polar(torch.full_like(angle, 2.0), angle)


def as_complex(x: Tensor) -> Tensor:
    return torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))


def rotated(x: Tensor) -> Tensor:
    return torch.view_as_real(as_complex(x) * turns().view(1, 3, 1, -1)).flatten(3)


def conjugated(x: Tensor) -> Tensor:
    z = as_complex(x)
    return torch.view_as_real((z * turns()[None, :, None].conj()).resolve_conj())


def halves(x: Tensor) -> Tensor:
    z = torch.complex(x[..., :3], x[..., 3:]) * turns().unsqueeze(-2)
    return torch.cat([z.real, z.imag], -1)


def moved(x: Tensor) -> Tensor:
    z = as_complex(x).transpose(-3, -1).unsqueeze(-1)
    z = torch.cat([z, z.expand(2, 3, 4, 3, 1)], -1).permute(0, -2, 2, 1, -1)
    return torch.view_as_real(z[:, -1].select(-1, 1) - z[:, 0, ..., 0] * x[:, 0, :, :3])


def looked_up(x: Tensor) -> Tensor:
    at = torch.tensor([2, 0, 1])
    return torch.view_as_real(as_complex(x) * turns()[at][None, :, None] * 0.5)


def graph_of(function: Callable[[Tensor], Tensor]) -> Graph:
    return captured(lambda: (function, (X,)), name="complex")


@pytest.mark.parametrize("function", [rotated, conjugated, halves, moved, looked_up])
def test_complex_numbers_mean_what_they_do_in_pytorch(function: Callable[[Tensor], Tensor]) -> None:
    graph = graph_of(function)
    assert "opaque" not in {node.op for node in graph.nodes}
    (name,) = (node.id for node in graph.inputs())
    (value,) = evaluate(graph, {name: [X.double().numpy()]}).values()
    np.testing.assert_allclose(value[0], function(X).numpy(), rtol=1e-5, atol=1e-5)


def length(x: Tensor) -> Tensor:
    return as_complex(x).abs()


def root(x: Tensor) -> Tensor:
    return as_complex(x).sqrt().real


@pytest.mark.parametrize("function", [as_complex, length, root])
def test_what_is_not_known_of_pairs_leaves_the_program_as_it_is(function: Callable[[Tensor], Tensor]) -> None:
    assert "opaque" in {node.op for node in graph_of(function).nodes}
