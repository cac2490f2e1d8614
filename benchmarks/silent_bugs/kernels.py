"""Kernels of an inference engine as custom operations: without a meaning of their own, as compiled ones are.

``kernel_references.py`` says what they compute.
"""

import torch
from torch import Tensor
from torch.library import custom_op


@custom_op("silent_bugs::norm_and_rotate", mutates_args=())
def norm_and_rotate(x: Tensor, gain: Tensor, cos: Tensor, sin: Tensor, rotary_dim: int = 0) -> Tensor:
    """Heads normed and turned; x [T, H, D], tables [T, D / 2]. All of the head turns if no part is stated."""
    raise RuntimeError("there is no such kernel on this machine")


@norm_and_rotate.register_fake
def _(x: Tensor, gain: Tensor, cos: Tensor, sin: Tensor, rotary_dim: int = 0) -> Tensor:
    return torch.empty_like(x)


@custom_op("silent_bugs::rms_norm", mutates_args=())
def rms_norm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    """A norm over the last dimension; reads its gain as of the type of ``x``."""
    raise RuntimeError("there is no such kernel on this machine")


@rms_norm.register_fake
def _(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    return torch.empty_like(x)
