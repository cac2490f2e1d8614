"""Arithmetic, functions of one operand, choices and casts give what PyTorch gives."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_graphs import Cases, assert_translates, booleans, integers, reals

CASES = Cases()


@CASES.add(reals(3, 4))
def scalars(x: Tensor) -> object:
    return (x + 2, 3 - x, x * 0.5, x / 4, 1 / x, x**2, 2**x, -x, x - 1)


@CASES.add(integers(0, 9, 5))
def weak_scalars(i: Tensor) -> object:
    return (i + 1, i * 2.5, i / 2, i // 2, i % 3, 7 - i, i**2)


@CASES.add(booleans(6), integers(0, 5, 6))
def bool_and_int(b: Tensor, i: Tensor) -> object:
    return (b + i, b * i, b & (i > 2), b | (i > 2), ~b, b ^ (i < 1))


@CASES.add(booleans(6))
def bools(b: Tensor) -> object:
    return (b + b, b * b, b.sum(), b.cumsum(0), b.to(torch.int64), b.double() * 2)


@CASES.add(reals(4), integers(0, 4, 4))
def mixed_types(x: Tensor, i: Tensor) -> object:
    return (x + i, x * i, i - x, x < i, i == 2, i > 2.5, x != i)


@CASES.add(reals(3, 1, 4), reals(2, 1))
def broadcast(x: Tensor, y: Tensor) -> object:
    return (x + y, x * y, torch.maximum(x, y), torch.minimum(x, y))


@CASES.add(reals(3), reals(3))
def alpha(x: Tensor, y: Tensor) -> object:
    return (torch.add(x, y, alpha=2), torch.sub(x, y, alpha=3), torch.rsub(x, y, alpha=2))


@CASES.add(integers(-9, 9, 12), integers(1, 4, 12), reals(12))
def rounding_division(i: Tensor, j: Tensor, x: Tensor) -> object:
    return (
        torch.div(i, j, rounding_mode="floor"),
        torch.div(i, j, rounding_mode="trunc"),
        torch.div(x, 0.3, rounding_mode="trunc"),
        torch.remainder(i, j),
        torch.fmod(i, j),
        torch.remainder(x, 0.4),
    )


@CASES.add(reals(4), reals(4), reals(4))
def fused(x: Tensor, y: Tensor, z: Tensor) -> object:
    return (
        torch.addcmul(x, y, z, value=0.5),
        torch.lerp(x, y, 0.3),
        torch.addcdiv(x, y, z),
        torch.logaddexp(x, y),
    )


@CASES.add(reals(3, 4))
def functions(x: Tensor) -> object:
    return (
        x.exp(),
        x.abs().log(),
        x.abs().sqrt(),
        x.abs().rsqrt(),
        x.sin(),
        x.cos(),
        x.tanh(),
        x.sigmoid(),
        x.relu(),
        F.silu(x),
        F.gelu(x),
        F.gelu(x, approximate="tanh"),
        x.erf(),
        x.floor(),
        x.ceil(),
        x.round(),
        x.trunc(),
        x.sign(),
        x.square(),
        x.reciprocal(),
        x.expm1(),
        x.abs().log1p(),
        F.leaky_relu(x, 0.1),
        F.softplus(x),
        F.relu6(x),
        F.elu(x),
        F.glu(x),
        F.logsigmoid(x),
        F.hardtanh(x),
    )


@CASES.add(reals(3, 4), reals(3, 4), booleans(3, 4))
def choices(x: Tensor, y: Tensor, b: Tensor) -> object:
    return (
        torch.where(b, x, y),
        torch.where(b, x, 0.0),
        x.masked_fill(b, -1000000000.0),
        x.clamp(-0.5, 0.5),
        x.clamp(min=0),
        x.clamp(max=0),
        x.clamp_min(0.1),
        torch.logical_and(x > 0, b),
        torch.logical_not(b),
        torch.isfinite(x),
        torch.isinf(x),
    )


@CASES.add(reals(5) * 3, integers(0, 3, 5))
def casts(x: Tensor, i: Tensor) -> object:
    return (x.to(torch.int64), i.to(torch.float64), i.type_as(x), x.to(x.dtype), x.bool(), i.double())


@pytest.mark.parametrize("name", CASES.names)
def test_arithmetic_means_what_pytorch_computes(name: str, tmp_path: Path) -> None:
    assert_translates(*CASES[name], tmp_path)
