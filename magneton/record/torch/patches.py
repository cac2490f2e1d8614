"""The sketch of a large buffer after a few of its elements were overwritten: no second look at the others.

In: what a write is about to overwrite (a slice of a cache), what it left there, and the sketch of a tensor
over the same memory from before. Out: the sketch of that tensor now. Sketches are sums, so

    after = before - sums over what was overwritten + sums over what was written

and the projections follow from where in the tensor each element lies. Where a patch would not be exact (the
rms wandered to other frequencies, nearly everything is gone) there is none: the tensor is looked at whole.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from magneton.profile.sketches import FREQUENCIES, Sketch
from magneton.record.sketching import HUGE, PROJECTION_PERIOD, first_frequency, projection_weights
from magneton.record.torch.calls import Call
from magneton.record.torch.internals import unobserved
from magneton.record.torch.sketching import NARROW, count_sampled, is_sketchable
from magneton.record.torch.small_sketch import SMALL
from magneton.record.torch.storage import Change, Geometry, geometry_of, has_storage
from magneton.record.torch.waves import wave_totals

PATCHED = 4 * SMALL  # elements; a smaller tensor is as quickly looked at whole
LARGEST_SHARE = 8  # what changed is at most one part in so many
LOST = 0.01  # of the squares: with less left, what is left is mostly rounding of what is gone

_DTYPES = frozenset((torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.int64))
_ALONG_DIM = frozenset(f"aten::index_{name}_" for name in ("copy", "add", "fill"))
_BY_INDICES = frozenset(("aten::index_put_", "aten::_index_put_impl_", "aten::_unsafe_index_put_"))


class PatchOf(Protocol):
    """What ``patch_sketch`` is; another may count."""

    def __call__(self, known: Sketch, tensor: Tensor, changes: Sequence[Change]) -> Sketch | None: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pending:
    """What a write is about to overwrite, and where that lies in the storage."""

    offsets: NDArray[np.int64]
    before: Tensor


class _Numbers:
    """Elements that came or went: those that are not ordinary are counted by kind and replaced by 0."""

    def __init__(self, elements: Tensor) -> None:
        wide = elements.to(torch.float64)
        near = wide.abs() <= HUGE  # a NaN compares False
        self.ordinary = torch.where(near, wide, 0.0)
        self.squares = float(self.ordinary.square().sum())
        self.odd = {
            "pos_inf": int((wide == math.inf).sum()),
            "neg_inf": int((wide == -math.inf).sum()),
            "nan": int(wide.isnan().sum()),
            "huge": int((wide.isfinite() & ~near).sum()),
        }
        self._dtype = torch.float32 if elements.dtype in NARROW else torch.float64

    def waves(self, first: int) -> tuple[Sequence[float], Sequence[float]]:
        return wave_totals(self.ordinary.to(self._dtype), first)


def before_write(call: Call, target: Tensor, most: int) -> Pending | None:
    """What ``call`` may change of ``target``; None where that is more than ``most`` elements or unknown."""
    if not has_storage(target) or not is_sketchable(target) or target.dtype not in _DTYPES:
        return None
    offsets = _written_offsets(call, target, most)
    return None if offsets is None else Pending(offsets=offsets, before=_gathered(target, offsets))


def after_write(pending: Pending, target: Tensor) -> Change:
    return Change(
        dtype=target.dtype,
        offsets=pending.offsets,
        before=pending.before,
        after=_gathered(target, pending.offsets),
    )


def patch_sketch(known: Sketch, tensor: Tensor, changes: Sequence[Change]) -> Sketch | None:
    """The sketch of ``tensor``, ``known`` before ``changes``; None where it has to be taken anew."""
    geometry = geometry_of(tensor)
    if tensor.numel() != known.count or not _is_nested(geometry):
        return None
    if any(change.dtype != geometry.dtype for change in changes):
        return None
    places = [_positions(geometry, change.offsets) for change in changes]
    inside = [np.flatnonzero(place >= 0) for place in places]
    at = np.concatenate([place[kept] for place, kept in zip(places, inside, strict=True)])
    if at.size > known.count // LARGEST_SHARE:
        return None
    with unobserved(tensor.device.type):
        chosen = [torch.from_numpy(kept).to(tensor.device) for kept in inside]
        before = torch.cat([change.before[kept] for change, kept in zip(changes, chosen, strict=True)])
        after = torch.cat([change.after[kept] for change, kept in zip(changes, chosen, strict=True)])
        return _exchanged(known, tensor, at, _Numbers(before), _Numbers(after))


def _exchanged(
    known: Sketch, tensor: Tensor, at: NDArray[np.int64], old: _Numbers, new: _Numbers
) -> Sketch | None:
    """``known`` with ``new`` in place of ``old``, which lie ``at`` these places of ``tensor``."""
    odd = {kind: getattr(known, kind) + new.odd[kind] - old.odd[kind] for kind in new.odd}
    had = known.count - known.pos_inf - known.neg_inf - known.nan - known.huge
    has = known.count - sum(odd.values())
    squares = known.rms**2 * had
    left = squares + new.squares - old.squares
    if has <= 0 or left < LOST * squares:
        return None
    rms = math.sqrt(left / has)
    first = first_frequency(rms)
    if first != known.first and known.rms > 0.0:
        return None
    cosine, sine = known.cos_sum, known.sin_sum
    if known.rms == 0.0:  # zeros have cos 0 = 1 and sin 0 = 0 at whatever frequency
        cosine, sine = (float(had),) * FREQUENCIES, (0.0,) * FREQUENCIES
    gone, come = old.waves(first), new.waves(first)
    moved = projection_weights()[:, at % PROJECTION_PERIOD] @ (new.ordinary - old.ordinary).cpu().numpy()
    return replace(
        known,
        **odd,
        distinct=count_sampled(tensor),
        rms=rms,
        first=first,
        # Odd numbers among what came and went entered as 0, and cos 0 = 1.
        cos_sum=tuple(c - g + n + has - had for c, g, n in zip(cosine, gone[0], come[0], strict=True)),
        sin_sum=tuple(s - g + n for s, g, n in zip(sine, gone[1], come[1], strict=True)),
        projection=(known.projection[0] + float(moved[0]), known.projection[1] + float(moved[1])),
    )


def _written_offsets(call: Call, target: Tensor, most: int) -> NDArray[np.int64] | None:
    """Each offset that ``call`` may write to, once."""
    geometry = geometry_of(target)
    steps = [s * np.arange(n) for n, s in zip(geometry.shape, geometry.stride, strict=True)]
    name, given = call.signature.name, call.given
    if name in _ALONG_DIM | _BY_INDICES and given.get("self") is not target:
        return None
    if name in _ALONG_DIM:
        dim = int(given["dim"])
        index = _whole_numbers(given["index"]) % geometry.shape[dim]
        steps[dim] = geometry.stride[dim] * np.unique(index)
    elif name in _BY_INDICES:
        found = _steps_by_indices(geometry, given["indices"], steps)
        if found is None:
            return None
        steps = found
    if not _is_nested(geometry) or math.prod(step.size for step in steps) > most:
        return None
    offsets = np.array([geometry.offset])
    for step in steps:
        offsets = np.add.outer(offsets, step)
    return offsets.reshape(-1)


def _steps_by_indices(
    geometry: Geometry, indices: Sequence[Tensor | None], steps: Sequence[NDArray[np.int64]]
) -> list[NDArray[np.int64]] | None:
    """The steps along dimensions that are not indexed, and those of all indexed ones together."""
    together = np.zeros((), dtype=np.int64)
    free = list(steps[len(indices) :])
    for dim, index in enumerate(indices):
        if index is None:
            free.append(steps[dim])
            continue
        if index.dtype in (torch.bool, torch.uint8):  # a mask
            return None
        together = together + geometry.stride[dim] * (_whole_numbers(index) % geometry.shape[dim])
    return [*free, np.unique(together)]


def _whole_numbers(index: Tensor) -> NDArray[np.int64]:
    with unobserved(index.device.type):
        return index.detach().to(torch.int64).cpu().numpy()


def _gathered(tensor: Tensor, offsets: NDArray[np.int64]) -> Tensor:
    """The elements at ``offsets`` of the tensor's storage."""
    with unobserved(tensor.device.type):
        size = tensor.untyped_storage().nbytes() // tensor.element_size()
        flat = tensor.detach().as_strided((size,), (1,), 0)
        return flat[torch.from_numpy(offsets).to(tensor.device)]


def _is_nested(geometry: Geometry) -> bool:
    """Whether each offset belongs to one element at most, which division finds."""
    if geometry.conjugated or geometry.negated:
        return False
    span = 1
    for n, stride in sorted(zip(geometry.shape, geometry.stride, strict=True), key=lambda dim: dim[1]):
        if n > 1:
            if stride < span:
                return False
            span = stride * n
    return True


def _positions(geometry: Geometry, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which element of a nested geometry lies at each offset, in logical order; -1 for none."""
    left = offsets - geometry.offset
    inside = left >= 0
    places = np.zeros_like(left)
    dims: list[tuple[int, int, int]] = []
    inner = 1
    for n, stride in zip(reversed(geometry.shape), reversed(geometry.stride), strict=True):
        dims += [(stride, n, inner)] if n > 1 else []
        inner *= n
    for stride, n, within in sorted(dims, reverse=True):
        index = left // stride
        inside &= index < n
        left = left - index * stride
        places += index * within
    return np.where(inside & (left == 0), places, -1)
