"""Filters, frames and recurrence."""

from math import pi

import torch
import torch.nn.functional as F
from planting import LENGTH, WIDTH, Planted, Step, beside, matrix, normal, within
from torch import Tensor, nn

ORIGINAL, TARGET, ZEROS = 441, 160, 64
SHORT = 8192  # samples to be resampled


def filters() -> Tensor:
    """A windowed sinc for every phase between both rates, [TARGET, 1, taps]."""
    reach = ZEROS * ORIGINAL // TARGET
    taps = torch.arange(-reach, reach + ORIGINAL, dtype=torch.float64) / ORIGINAL
    times = (taps - torch.arange(TARGET).double()[:, None] / TARGET) * TARGET  # <- resample_kernel
    window = torch.cos(times.clamp(-ZEROS, ZEROS) * pi / ZEROS / 2) ** 2  # <- resample_kernel
    return (torch.sinc(times) * window * TARGET / ORIGINAL).float()[:, None]  # <- resample_kernel


def signal_of(x: Tensor) -> Tensor:
    return x.reshape(1, 1, -1)


def resampled_anew(x: Tensor) -> Tensor:
    return F.conv1d(signal_of(x)[..., :SHORT], filters(), stride=ORIGINAL)  # <- resample_kernel


def resampled(m: Planted, x: Tensor) -> Tensor:
    return F.conv1d(signal_of(x)[..., :SHORT], m.filters, stride=ORIGINAL)


def resample_kernel_wasteful() -> Step:
    return beside(resampled_anew)


def resample_kernel_lean() -> Step:
    return beside(Planted(resampled, filters=filters()))


FRAME, HOP = 256, 64


def spectrum_of(frames: Tensor) -> Tensor:
    return torch.fft.rfft(frames * torch.hann_window(FRAME)).abs()


def framed_by_convolution(x: Tensor) -> Tensor:
    """Frames of a signal, cut out by a convolution with unit vectors."""
    units = torch.eye(FRAME)[:, None]
    return spectrum_of(F.conv1d(signal_of(x), units, stride=HOP).transpose(1, 2))  # <- frames_by_convolution


def framed_by_view(x: Tensor) -> Tensor:
    return spectrum_of(signal_of(x)[:, 0].unfold(-1, FRAME, HOP))


def frames_by_convolution_wasteful() -> Step:
    return beside(framed_by_convolution)


def frames_by_convolution_lean() -> Step:
    return beside(framed_by_view)


PADDED, VALID = 1024, LENGTH


def encoded_padded(m: Planted, x: Tensor) -> Tensor:
    """An encoder layer without a mask, whose input is filled up to full length."""
    return encoded(m, F.pad(x, (0, 0, 0, PADDED - VALID)))[:, :VALID]  # <- padded_encoder


def encoded_valid(m: Planted, x: Tensor) -> Tensor:
    return encoded(m, x)


def encoded(m: Planted, x: Tensor) -> Tensor:
    q, k, v = F.linear(x, m.qkv).chunk(3, dim=-1)
    return F.scaled_dot_product_attention(q, k, v)


def padded_encoder_wasteful() -> Step:
    return within(Planted(encoded_padded, qkv=matrix(3 * WIDTH, WIDTH, 111)))


def padded_encoder_lean() -> Step:
    return within(Planted(encoded_valid, qkv=matrix(3 * WIDTH, WIDTH, 111)))


def mel_by_transposes(m: Planted, x: Tensor) -> Tensor:
    power = (m.spectra * x[0, 0, 0]).square()
    mel = torch.matmul(power.transpose(1, 2), m.bank)  # <- mel_transposed
    return mel.transpose(1, 2).contiguous()  # <- mel_transposed


def mel_in_place(m: Planted, x: Tensor) -> Tensor:
    return torch.matmul(m.bank.T, (m.spectra * x[0, 0, 0]).square())


def bank() -> dict[str, Tensor]:
    return {"spectra": normal(8, 201, 500, seed=112), "bank": matrix(201, 80, 113)}


def mel_transposed_wasteful() -> Step:
    return beside(Planted(mel_by_transposes, **bank()))


def mel_transposed_lean() -> Step:
    return beside(Planted(mel_in_place, **bank()))


class Recurrent(nn.Module):
    """The same recurrence, cell by cell or in one call."""

    def __init__(self, *, stepwise: bool) -> None:
        super().__init__()
        self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.stepwise = stepwise
        with torch.no_grad():
            for seed, parameter in enumerate(self.lstm.parameters(), start=114):
                parameter.copy_(normal(*parameter.shape, seed=seed) / WIDTH**0.5)

    def forward(self, x: Tensor) -> Tensor:
        if not self.stepwise:
            return self.lstm(x)[0]
        hidden = cell = x.new_zeros(1, WIDTH)
        made: list[Tensor] = []
        first, second, bias, other = self.lstm.parameters()
        for row in x.unbind(1):
            hidden, cell = torch.lstm_cell(row, (hidden, cell), first, second, bias, other)  # <- cell_by_cell
            made.append(hidden)
        return torch.stack(made, 1)


def cell_by_cell_wasteful() -> Step:
    return beside(Recurrent(stepwise=True))


def cell_by_cell_lean() -> Step:
    return beside(Recurrent(stepwise=False))
