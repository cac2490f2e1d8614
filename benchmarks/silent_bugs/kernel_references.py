"""What the kernels compute, for ``scalify verify --ops kernel_references.py``."""

import torch
from torch import Tensor


def norm_and_rotate(x: Tensor, gain: Tensor, cos: Tensor, sin: Tensor, rotary_dim: int = 0) -> Tensor:
    """x [T, H, D], tables [T, D / 2]."""
    half = (rotary_dim or x.shape[-1]) // 2
    scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
    x = x * scale * gain
    cos, sin = cos[:, None, :half], sin[:, None, :half]
    first, second, rest = x.split([half, half, x.shape[-1] - 2 * half], -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin, rest), -1)


def rms_norm(x: Tensor, gain: Tensor, eps: float) -> Tensor:
    """Defined for a gain of the activations' type only."""
    if gain.dtype != x.dtype:
        raise TypeError(f"a gain of {gain.dtype} beside activations of {x.dtype}")
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * gain.float()).to(x.dtype)


OPS = {"silent_bugs::norm_and_rotate": norm_and_rotate, "silent_bugs::rms_norm": rms_norm}
