"""Number formats, and functions written out."""

from math import pi, sqrt

import torch
import torch.nn.functional as F
from planting import LENGTH, WIDTH, Planted, Step, beside, matrix, normal, within
from torch import Tensor


def activated_by_hand(m: Planted, x: Tensor) -> Tensor:
    inner = F.linear(x, m.up)
    cubic = inner + 0.044715 * torch.pow(inner, 3.0)  # <- gelu_by_hand
    active = 0.5 * inner * (1.0 + torch.tanh(sqrt(2.0 / pi) * cubic))  # <- gelu_by_hand
    return F.linear(active, m.down)


def activated(m: Planted, x: Tensor) -> Tensor:
    return F.linear(F.gelu(F.linear(x, m.up), approximate="tanh"), m.down)


def feed_forward() -> dict[str, Tensor]:
    return {"up": matrix(16 * WIDTH, WIDTH, 101), "down": matrix(WIDTH, 16 * WIDTH, 102)}


def gelu_by_hand_wasteful() -> Step:
    return within(Planted(activated_by_hand, **feed_forward()))


def gelu_by_hand_lean() -> Step:
    return within(Planted(activated, **feed_forward()))


def denoised_in_double(m: Planted, x: Tensor) -> Tensor:
    """A schedule in float64 takes the latents with it."""
    sigma = torch.linspace(0.1, 1.0, 8, dtype=torch.float64)[2:3]
    latents = m.latents * x[0, 0, 0]
    return ((latents * sigma).tanh() - latents / sigma).float()  # <- double_schedule


def denoised_in_single(m: Planted, x: Tensor) -> Tensor:
    sigma = torch.linspace(0.1, 1.0, 8)[2:3]
    latents = m.latents * x[0, 0, 0]
    return (latents * sigma).tanh() - latents / sigma


def double_schedule_wasteful() -> Step:
    return beside(Planted(denoised_in_double, latents=normal(4, 64, 1024, seed=103)))


def double_schedule_lean() -> Step:
    return beside(Planted(denoised_in_single, latents=normal(4, 64, 1024, seed=103)))


def image_from(x: Tensor) -> Tensor:
    return ((x.tanh() + 1) * 127).to(torch.uint8).view(1, 1, LENGTH, WIDTH).expand(1, 3, -1, -1).contiguous()


def resized_in_float(x: Tensor) -> Tensor:
    large = F.interpolate(image_from(x).float(), scale_factor=3, mode="bilinear", antialias=True)
    return large.round().clamp(0, 255).to(torch.uint8)  # <- resize_in_float


def resized_in_bytes(x: Tensor) -> Tensor:
    return F.interpolate(image_from(x), scale_factor=3, mode="bilinear", antialias=True)


def resize_in_float_wasteful() -> Step:
    return beside(resized_in_float)


def resize_in_float_lean() -> Step:
    return beside(resized_in_bytes)
