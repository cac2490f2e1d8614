"""Sketch a tensor where it lies: the numbers of ``magneton.record.sketching``, fast.

A tensor goes in; a ``Sketch`` comes out, or None where there is nothing to sketch. Nothing is recorded,
no random number is drawn, no gradient is tracked. Elements pass twice, in chunks that stay in the cache:

    scan   sum of squares, projections   ->  rms, hence the frequencies
    sums   cos and sin at two frequencies; the octaves above follow by squaring e^(i f x)

Chunks are added up in float64; the sums over a chunk of zeros are known. Narrow dtypes are computed in
float32, which is exact enough because a feature is an average: an element k times the rms loses k times the
precision, and there are at most 1/k^2 of those. Only when the sum of squares tells of non-finite, huge or
tiny numbers are elements looked at one by one.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from magneton.profile.sketches import Sketch
from magneton.record.sketching import (
    HUGE,
    PROJECTION_PERIOD,
    SAMPLE,
    first_frequency,
    projection_weights,
    sample_step,
)
from magneton.record.torch.internals import unobserved
from magneton.record.torch.small_sketch import (
    SMALL,
    SQUARABLE,
    count_distinct,
    project_small,
    sketch_small,
)
from magneton.record.torch.waves import CHUNK_CPU, CHUNK_DEVICE, chunk_totals

CAP = 2**28  # elements; a tensor above is not sketched
PIECE = 1 << 22  # elements of a strided tensor gathered at once

NARROW = frozenset(
    {torch.float32, torch.float16, torch.bfloat16, torch.bool, torch.int8, torch.uint8, torch.int16}
    | {torch.complex64, torch.complex32}
    | {getattr(torch, name) for name in dir(torch) if name.startswith("float8_")}
)
WIDE = frozenset(
    {torch.float64, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64, torch.complex128}
)


class SketchOf(Protocol):
    """What ``sketch_tensor`` is; another may keep the contents (a benchmark) or nothing at all."""

    def __call__(
        self, tensor: Tensor, *, cap: int = CAP, rearranged_from: Sketch | None = None
    ) -> Sketch | None: ...


def sketch_tensor(tensor: Tensor, *, cap: int = CAP, rearranged_from: Sketch | None = None) -> Sketch | None:
    """The sketch of ``tensor``; None where it is empty, opaque, on no real device or above ``cap`` elements.

    ``rearranged_from`` is the sketch of a tensor known to hold the same elements in another order: what
    does not depend on the order is taken from there.
    """
    if not is_sketchable(tensor) or tensor.numel() > cap:
        return None
    with unobserved(tensor.device.type):
        elements = _Elements(tensor.detach())
        if rearranged_from is not None and rearranged_from.count == elements.count:
            return _reordered(elements, rearranged_from)
        if elements.count <= SMALL:
            return sketch_small(elements.numbers(), narrow=elements.dtype == torch.float32)
        return _sketch(elements)


def count_sampled(tensor: Tensor) -> int:
    """``Sketch.distinct`` of a tensor that can be sketched."""
    with unobserved(tensor.device.type):
        return _Elements(tensor.detach()).distinct()


def is_sketchable(tensor: Tensor) -> bool:
    """Whether the elements of ``tensor`` are numbers that can be read."""
    plain = type(tensor) is Tensor or type(tensor) in (torch.nn.Parameter, torch.nn.Buffer)
    return (
        plain
        and tensor.layout is torch.strided
        and not tensor.is_nested
        and tensor.device.type != "meta"
        and tensor.numel() > 0
        and (tensor.dtype in NARROW or tensor.dtype in WIDE)
    )


class _Elements:
    """A tensor as a sequence of real numbers in logical order, in chunks of working precision."""

    def __init__(self, tensor: Tensor) -> None:
        if tensor.is_complex():
            tensor = torch.view_as_real(tensor.resolve_conj())
        self.tensor = tensor.resolve_neg()
        self.count = self.tensor.numel()
        self.dtype = torch.float32 if self.tensor.dtype in NARROW else torch.float64
        self.chunk = min(self.count, CHUNK_CPU if tensor.device.type == "cpu" else CHUNK_DEVICE)

    def pieces(self) -> Iterator[Tensor]:
        """Contiguous one-dimensional parts; a strided tensor is gathered bit by bit."""
        yield from _pieces(self.tensor)

    def chunks(self, dtype: torch.dtype) -> Iterator[Tensor]:
        buffer: Tensor | None = None
        for piece in self.pieces():
            for chunk in piece.split(self.chunk):
                if chunk.dtype == dtype:
                    yield chunk
                    continue
                if buffer is None:
                    buffer = torch.empty(self.chunk, dtype=dtype, device=chunk.device)
                yield buffer[: chunk.numel()].copy_(chunk)

    def numbers(self) -> NDArray[np.float64]:
        """All of them at once."""
        return self.tensor.reshape(-1).to(torch.float64).cpu().numpy()

    def distinct(self) -> int:
        """Different numbers in a sample, which is picked where it lies."""
        step = sample_step(self.count)
        if self.tensor.is_contiguous():
            sampled = self.tensor.view(-1)[::step][:SAMPLE]
            return count_distinct(sampled.to(self.dtype).cpu().numpy())
        positions = np.arange(0, self.count, step)[:SAMPLE]
        places = np.unravel_index(positions, self.tensor.shape)
        offsets = np.zeros_like(positions)
        for place, stride in zip(places, self.tensor.stride(), strict=True):
            offsets += place * stride
        flat = self.tensor.as_strided((int(offsets.max()) + 1,), (1,))
        sampled = flat[torch.from_numpy(offsets).to(flat.device)]
        return count_distinct(sampled.to(self.dtype).cpu().numpy())


def _pieces(tensor: Tensor) -> Iterator[Tensor]:
    if tensor.is_contiguous():
        yield tensor.view(-1)
    elif tensor.numel() <= PIECE or tensor.dim() == 1:
        yield tensor.reshape(-1)
    else:
        for part in tensor:
            yield from _pieces(part)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scan:
    ordinary: int  # elements that are neither non-finite nor huge
    pos_inf: int
    neg_inf: int
    nan: int
    squares: tuple[float, ...]  # their sum over each chunk
    projection: tuple[float, float]

    @property
    def rms(self) -> float:
        return math.sqrt(sum(self.squares) / self.ordinary) if self.ordinary else 0.0


@lru_cache(maxsize=8)
def _weights(dtype: torch.dtype, device: torch.device, chunk: int) -> Tensor:
    """The projection's weights, [2, period + chunk]: any stretch of one chunk is a plain slice."""
    weights = projection_weights()
    repeated = np.tile(weights, 1 + -(-chunk // PROJECTION_PERIOD))[:, : PROJECTION_PERIOD + chunk]
    return torch.tensor(repeated, dtype=dtype, device=device)


def _project(chunk: Tensor, position: int, weights: Tensor) -> tuple[Tensor, Tensor]:
    start = position % PROJECTION_PERIOD
    one, two = weights[:, start : start + chunk.numel()]
    return torch.dot(chunk, one), torch.dot(chunk, two)


def _scan(elements: _Elements) -> _Scan | None:
    """Sums in working precision; None where some element needs a closer look."""
    weights = _weights(elements.dtype, elements.tensor.device, _slot(elements.chunk))
    square = torch.empty(elements.chunk, dtype=elements.dtype, device=elements.tensor.device)
    rows: list[Tensor] = []
    position = 0
    for chunk in elements.chunks(elements.dtype):
        squared = torch.mul(chunk, chunk, out=square[: chunk.numel()])
        rows.append(torch.stack((squared.sum(), *_project(chunk, position, weights))))
        position += chunk.numel()
    table = torch.stack(rows).to(torch.float64)
    one, two = table[:, 1:].sum(0).tolist()
    scan = _Scan(
        ordinary=elements.count,
        pos_inf=0,
        neg_inf=0,
        nan=0,
        squares=tuple(table[:, 0].tolist()),
        projection=(one, two),
    )
    return scan if _is_usable(scan.rms, elements) else None


def _is_usable(rms: float, elements: _Elements) -> bool:
    """Whether squares neither overflowed (any huge or non-finite number makes them) nor vanished."""
    if rms == 0.0:
        return not any(bool(chunk.any()) for chunk in elements.chunks(elements.dtype))
    if elements.dtype == torch.float32:
        return SQUARABLE[0] <= rms <= SQUARABLE[1]
    return rms * math.sqrt(elements.count) <= HUGE  # a NaN compares False


def _slot(chunk: int) -> int:
    """The few sizes for which weights are kept."""
    return CHUNK_CPU if chunk <= CHUNK_CPU else CHUNK_DEVICE


def _ordinary_chunks(elements: _Elements, dtype: torch.dtype) -> Iterator[Tensor]:
    """Chunks with 0 where an element is non-finite or huge."""
    for chunk in elements.chunks(dtype):
        yield torch.where(chunk.abs() <= HUGE, chunk, 0.0)


def _scan_closely(elements: _Elements, dtype: torch.dtype = torch.float64) -> _Scan:
    weights = _weights(dtype, elements.tensor.device, _slot(elements.chunk))
    counts: list[Tensor] = []
    rows: list[Tensor] = []
    position = 0
    for chunk in elements.chunks(dtype):
        ordinary = chunk.abs() <= HUGE
        data = torch.where(ordinary, chunk, 0.0)
        odd = (ordinary, chunk == math.inf, chunk == -math.inf, chunk.isnan())
        counts.append(torch.stack([part.count_nonzero() for part in odd]))
        rows.append(torch.stack(((data * data).sum(), *_project(data, position, weights))))
        position += chunk.numel()
    ordinary, pos_inf, neg_inf, nan = torch.stack(counts).sum(0).tolist()
    table = torch.stack(rows).to(torch.float64)
    one, two = table[:, 1:].sum(0).tolist()
    return _Scan(
        ordinary=ordinary,
        pos_inf=pos_inf,
        neg_inf=neg_inf,
        nan=nan,
        squares=tuple(table[:, 0].tolist()),
        projection=(one, two),
    )


def _sketch(elements: _Elements) -> Sketch:
    scan, dtype = _scan(elements), elements.dtype
    chunks = elements.chunks(dtype)
    if scan is None:
        scan, dtype = _scan_for_odd(elements)
        chunks = _ordinary_chunks(elements, dtype)
    first = first_frequency(scan.rms)
    room = torch.empty(elements.chunk, dtype=dtype, device=elements.tensor.device)
    cos_sum, sin_sum = chunk_totals(chunks, scan.squares, first, room)
    outside = elements.count - scan.ordinary  # entered as 0: cos 0 = 1 each, sin 0 = 0
    return Sketch(
        count=elements.count,
        pos_inf=scan.pos_inf,
        neg_inf=scan.neg_inf,
        nan=scan.nan,
        huge=outside - scan.pos_inf - scan.neg_inf - scan.nan,
        distinct=elements.distinct(),
        rms=scan.rms,
        first=first,
        cos_sum=tuple(total - outside for total in cos_sum),
        sin_sum=sin_sum,
        projection=scan.projection,
    )


def _scan_for_odd(elements: _Elements) -> tuple[_Scan, torch.dtype]:
    """Without the odd numbers (a mask), what is left is often ordinary; else float64 has room for it."""
    if elements.dtype == torch.float32:
        scan = _scan_closely(elements, torch.float32)
        if SQUARABLE[0] <= scan.rms <= SQUARABLE[1]:
            return scan, torch.float32
    return _scan_closely(elements), torch.float64


def _reordered(elements: _Elements, known: Sketch) -> Sketch:
    """What depends on the order is new: the projection, and the sample that ``distinct`` looks at."""
    if known.pos_inf or known.neg_inf or known.nan or known.huge:
        projection = _scan_closely(elements).projection
    elif elements.count <= SMALL:
        projection = project_small(elements.numbers())
    else:
        projection = _projection(elements)
    distinct = known.distinct if elements.count <= SMALL else elements.distinct()
    return replace(known, projection=projection, distinct=distinct)


def _projection(elements: _Elements) -> tuple[float, float]:
    weights = _weights(elements.dtype, elements.tensor.device, _slot(elements.chunk))
    rows: list[Tensor] = []
    position = 0
    for chunk in elements.chunks(elements.dtype):
        rows.append(torch.stack(_project(chunk, position, weights)))
        position += chunk.numel()
    one, two = torch.stack(rows).to(torch.float64).sum(0).tolist()
    return one, two
