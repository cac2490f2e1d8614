"""Tensors that are laid out anew, or lie badly for what reads them."""

import torch
import torch.nn.functional as F
from planting import LENGTH, WIDTH, Planted, Step, beside, matrix, normal
from torch import Tensor

SIDE = 16  # LENGTH is an image of SIDE by SIDE
CHANNELS = 256


def image_of(x: Tensor) -> Tensor:
    """[1, T, D] as an image [1, D, SIDE, SIDE], channels last in memory."""
    return x.view(1, SIDE, SIDE, WIDTH).permute(0, 3, 1, 2)


def mixed_after_copy(m: Planted, x: Tensor) -> Tensor:
    frames = (m.frames * x[0, 0, :, None, None]).contiguous(memory_format=torch.channels_last)
    rows = frames.contiguous().permute(0, 2, 3, 1).reshape(-1, WIDTH)  # <- forced_contiguous
    return F.linear(rows, m.weight)


def mixed_in_place(m: Planted, x: Tensor) -> Tensor:
    frames = (m.frames * x[0, 0, :, None, None]).contiguous(memory_format=torch.channels_last)
    return F.linear(frames.permute(0, 2, 3, 1).reshape(-1, WIDTH), m.weight)


def video() -> dict[str, Tensor]:
    frames = normal(8, WIDTH, 32, 32, seed=61).contiguous(memory_format=torch.channels_last)
    return {"frames": frames, "weight": matrix(WIDTH // 4, WIDTH, 62)}


def forced_contiguous_wasteful() -> Step:
    return beside(Planted(mixed_after_copy, **video()))


def forced_contiguous_lean() -> Step:
    return beside(Planted(mixed_in_place, **video()))


def convolved_to_and_fro(m: Planted, x: Tensor) -> Tensor:
    """Three small convolutions, each of which is fed the other layout and gives it back."""
    image = image_of(x).repeat(1, 1, 4, 4)
    for _ in range(3):
        dense = image.contiguous()  # <- layout_ping_pong
        image = F.conv2d(dense, m.kernel, padding=1, groups=WIDTH)
        image = image.contiguous(memory_format=torch.channels_last)  # <- layout_ping_pong
    return image.mean((2, 3))


def convolved_in_one_layout(m: Planted, x: Tensor) -> Tensor:
    image = image_of(x).repeat(1, 1, 4, 4).contiguous(memory_format=torch.channels_last)
    kernel = m.kernel.contiguous(memory_format=torch.channels_last)
    for _ in range(3):
        image = F.conv2d(image, kernel, padding=1, groups=WIDTH)
    return image.mean((2, 3))


def layout_ping_pong_wasteful() -> Step:
    return beside(Planted(convolved_to_and_fro, kernel=normal(WIDTH, 1, 3, 3, seed=63) / 3))


def layout_ping_pong_lean() -> Step:
    return beside(Planted(convolved_in_one_layout, kernel=normal(WIDTH, 1, 3, 3, seed=63) / 3))


def normed_across(m: Planted, x: Tensor) -> Tensor:
    """A layer norm over the channels of what lies channels first."""
    first = m.image + x[0, 0, 0]
    return F.layer_norm(first.transpose(1, 2), (CHANNELS,))  # <- norm_of_channels_first


def normed_along(m: Planted, x: Tensor) -> Tensor:
    last = m.image + x[0, 0, 0]
    return F.layer_norm(last, (CHANNELS,))


def channels_first() -> Tensor:
    return normal(4, CHANNELS, 512, seed=64)


def norm_of_channels_first_wasteful() -> Step:
    return beside(Planted(normed_across, image=channels_first()))


def norm_of_channels_first_lean() -> Step:
    return beside(Planted(normed_along, image=channels_first().transpose(1, 2).contiguous()))


def convolved_after(m: Planted, x: Tensor) -> Tensor:
    large = image_of(x).repeat_interleave(2, 2).repeat_interleave(2, 3)
    return F.conv2d(large, m.kernel).mean((2, 3))  # <- convolution_after_upsampling


def convolved_before(m: Planted, x: Tensor) -> Tensor:
    small = F.conv2d(image_of(x), m.kernel)
    return small.repeat_interleave(2, 2).repeat_interleave(2, 3).mean((2, 3))


def convolution_after_upsampling_wasteful() -> Step:
    return beside(Planted(convolved_after, kernel=matrix(4 * WIDTH, WIDTH, 65).view(-1, WIDTH, 1, 1)))


def convolution_after_upsampling_lean() -> Step:
    return beside(Planted(convolved_before, kernel=matrix(4 * WIDTH, WIDTH, 65).view(-1, WIDTH, 1, 1)))


def biased_by_copies(m: Planted, x: Tensor) -> Tensor:
    return m.wide + x[0, 0].repeat(16 * LENGTH, 1)  # <- repeated_bias


def biased_by_broadcast(m: Planted, x: Tensor) -> Tensor:
    return m.wide + x[0, 0]


def repeated_bias_wasteful() -> Step:
    return beside(Planted(biased_by_copies, wide=normal(16 * LENGTH, WIDTH, seed=66)))


def repeated_bias_lean() -> Step:
    return beside(Planted(biased_by_broadcast, wide=normal(16 * LENGTH, WIDTH, seed=66)))
