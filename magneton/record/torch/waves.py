"""Sums of cosines and sines over many numbers: what a sketch is made of, chunk by chunk.

In: ordinary numbers of working precision, and the lowest frequency. Out: nine sums of each, in float64.
"""

from collections.abc import Iterable
from functools import lru_cache

import torch
from torch import Tensor

from magneton.profile.sketches import FREQUENCIES
from magneton.record.torch.small_sketch import SMALL, wave_sums

CHUNK_CPU = 1 << 16  # elements; four float32 buffers of it fit a second-level cache of 2 MiB
CHUNK_DEVICE = 1 << 22


class Waves:
    """Sums of cos(f x) and sin(f x) over chunks, at the nine frequencies from ``first`` on.

    With p = sin(x) cos(x) and u = sin(x)^2 one octave up is sin 2x = 2 p and cos 2x = 1 - 2 u; from there on
    q = p cos 2x is sin 4x / 4, and cos 4x = 1 - 8 p^2, and so on. Factors are left out of the buffers and put
    back into the sums: powers of two are exact, and no cosine but the first is ever written down.
    """

    def __init__(self, first: int, room: Tensor) -> None:
        self._first = first
        self._filler = torch.zeros((), dtype=room.dtype, device=room.device)
        self._buffers = room, torch.empty_like(room), torch.empty_like(room)
        self._factors, self._ones = _factors(room.device)

    def sums(self, chunk: Tensor) -> Tensor:
        """Nine cosine sums, then nine sine sums, of one chunk."""
        rows = [self._filler] * (2 * FREQUENCIES)
        for start in (0, 1):
            self._climb(chunk, start, rows)
        return torch.stack(rows).to(torch.float64) * self._factors + self._ones * chunk.numel()

    def _climb(self, chunk: Tensor, start: int, rows: list[Tensor]) -> None:
        s, other, square = (buffer[: chunk.numel()] for buffer in self._buffers)
        torch.mul(chunk, 2.0 ** ((self._first + start) / 2), out=other)
        torch.sin(other, out=s)
        torch.cos(other, out=other)
        rows[start], rows[FREQUENCIES + start] = other.sum(), s.sum()
        torch.mul(s, s, out=square)
        torch.mul(s, other, out=s)
        for index in range(start + 2, FREQUENCIES, 2):
            rows[index], rows[FREQUENCIES + index] = square.sum(), s.sum()
            if index + 2 < FREQUENCIES:
                # sin is s * 2^k here, and square the square of what s was an octave below.
                doubling = 2.0 * 4.0 ** (index // 2 - 1)
                torch.mul(s, s, out=other)
                torch.addcmul(s, s, square, value=-doubling, out=s)
                square, other = other, square


@lru_cache(maxsize=8)
def _factors(device: torch.device) -> tuple[Tensor, Tensor]:
    """What makes sums of cosines and sines of what ``Waves`` sums: times the first, plus n times the second.

    k octaves up sin is 2^k times what is summed, cos is 1 - 2 (2^(k - 1))^2 times the square below.
    """
    octaves = [index // 2 for index in range(FREQUENCIES)]
    cosine = [-2.0 * 4.0 ** (k - 1) if k else 1.0 for k in octaves]
    factors = cosine + [2.0**k for k in octaves]
    ones = [float(k > 0) for k in octaves] + [0.0] * FREQUENCIES
    return (
        torch.tensor(factors, dtype=torch.float64, device=device),
        torch.tensor(ones, dtype=torch.float64, device=device),
    )


def wave_totals(numbers: Tensor, first: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Sums of cos(f x) and of sin(f x) over a list of ordinary numbers of working precision."""
    if numbers.numel() <= SMALL:
        narrow = numbers.dtype == torch.float32
        cos_sum, sin_sum = wave_sums(numbers.to(torch.float64).cpu().numpy(), first, narrow=narrow)
        return tuple(cos_sum), tuple(sin_sum)
    size = min(max(1, numbers.numel()), CHUNK_CPU if numbers.device.type == "cpu" else CHUNK_DEVICE)
    chunks = numbers.split(size)
    return chunk_totals(
        chunks, [float(part.any()) for part in chunks], first, torch.empty_like(numbers[:size])
    )


def chunk_totals(
    chunks: Iterable[Tensor], squares: Iterable[float], first: int, room: Tensor
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """``room`` is of the kind of the chunks and as large as the largest; nothing is computed for zeros."""
    waves = Waves(first, room)
    zeros, rows = 0, list[Tensor]()
    for chunk, square in zip(chunks, squares, strict=True):
        if square == 0.0:
            zeros += chunk.numel()
        else:
            rows.append(waves.sums(chunk))
    sums: list[float] = torch.stack(rows).sum(0).tolist() if rows else [0.0] * (2 * FREQUENCIES)
    return tuple(total + zeros for total in sums[:FREQUENCIES]), tuple(sums[FREQUENCIES:])
