"""Losses and reductions."""

import torch
import torch.nn.functional as F
from planting import LENGTH, WIDTH, Planted, Step, beside, matrix
from torch import Tensor

CLASSES = 4096
SMOOTHING = 0.1


def classifier() -> dict[str, Tensor]:
    return {"table": matrix(CLASSES, WIDTH, 91)}


def targets() -> Tensor:
    return torch.arange(LENGTH) * 7 % CLASSES


def smoothed_by_one_hot(m: Planted, x: Tensor) -> Tensor:
    logits = F.linear(x[0], m.table)
    wanted = (
        F.one_hot(targets(), CLASSES).float() * (1 - SMOOTHING) + SMOOTHING / CLASSES
    )  # <- one_hot_smoothing
    return -(wanted * logits.log_softmax(-1)).sum(-1)  # <- one_hot_smoothing


def smoothed_by_index(m: Planted, x: Tensor) -> Tensor:
    logits = F.linear(x[0], m.table).log_softmax(-1)
    chosen = logits.gather(1, targets()[:, None])[:, 0]
    return -(1 - SMOOTHING) * chosen - SMOOTHING * logits.mean(-1)


def one_hot_smoothing_wasteful() -> Step:
    return beside(Planted(smoothed_by_one_hot, **classifier()))


def one_hot_smoothing_lean() -> Step:
    return beside(Planted(smoothed_by_index, **classifier()))


def summed_by_selection(m: Planted, x: Tensor) -> Tensor:
    values = F.linear(x[0], m.table)
    return values[values > 0].sum()  # <- masked_sum


def summed_by_product(m: Planted, x: Tensor) -> Tensor:
    values = F.linear(x[0], m.table)
    return (values * (values > 0)).sum()


def masked_sum_wasteful() -> Step:
    return beside(Planted(summed_by_selection, **classifier()))


def masked_sum_lean() -> Step:
    return beside(Planted(summed_by_product, **classifier()))
