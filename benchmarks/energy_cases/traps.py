"""What looks leaner costs more: the side that a rule of thumb would praise is the one to blame."""

import torch
import torch.nn.functional as F
from planting import LENGTH, WIDTH, Planted, Step, beside, matrix, normal
from torch import Tensor


def stable_sum(m: Planted, x: Tensor) -> Tensor:
    return (m.wide + x).logsumexp(-1)  # <- stable_logsumexp


def plain_sum(m: Planted, x: Tensor) -> Tensor:
    return (m.wide + x).exp().sum(-1).log()


def wide_rows() -> dict[str, Tensor]:
    return {"wide": normal(32, LENGTH, WIDTH, seed=141)}


def stable_logsumexp_wasteful() -> Step:
    return beside(Planted(stable_sum, **wide_rows()))


def stable_logsumexp_lean() -> Step:
    return beside(Planted(plain_sum, **wide_rows()))


def best_as_float(m: Planted, x: Tensor) -> Tensor:
    return F.linear(x.bfloat16(), m.table).float().argmax(-1)


def best_as_met(m: Planted, x: Tensor) -> Tensor:
    return F.linear(x.bfloat16(), m.table).argmax(-1)  # <- narrow_argmax


def table() -> dict[str, Tensor]:
    return {"table": matrix(8192, WIDTH, 142).bfloat16()}


def narrow_argmax_wasteful() -> Step:
    return beside(Planted(best_as_met, **table()))


def narrow_argmax_lean() -> Step:
    return beside(Planted(best_as_float, **table()))


def mixed(m: Planted, x: Tensor) -> Tensor:
    """A linear in the type of its weight; float16 is emulated on many processors, bfloat16 is not on some."""
    return F.linear(x.to(m.weight.dtype), m.weight).float()


def narrow_linear_wasteful() -> Step:
    return beside(Planted(mixed, weight=matrix(2048, WIDTH, 143)))


def narrow_linear_lean() -> Step:
    return beside(Planted(mixed, weight=matrix(2048, WIDTH, 143).to(torch.bfloat16)))


def half_linear_wasteful() -> Step:
    return beside(Planted(mixed, weight=matrix(2048, WIDTH, 143).to(torch.float16)))


def half_linear_lean() -> Step:
    return beside(Planted(mixed, weight=matrix(2048, WIDTH, 143)))
