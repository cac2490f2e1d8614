"""Which bytes of which memory does a tensor show, and who wrote them last?

In: tensors, as operators read and write them. Out: for each storage its writes in order, and which of
them a stretch of bytes still shows. Two tensors depend on each other only where their bytes overlap, so
that layers which keep their state in one shared storage stay independent.

A storage is known by its own identity, not by its address: memory that is freed and handed out again is
another storage. Only a weak reference is kept; nothing is held alive.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from magneton.profile.model import OpId, ValueId
from magneton.record.torch.internals import storage_identity, tensor_identity, weak_storage, weak_tensor

OVERLAP_WORK = 10_000  # steps NumPy may take to decide whether two strided ranges share a byte


class Geometry(NamedTuple):
    """How a tensor lies in its storage. Equal geometry at one moment means equal elements."""

    dtype: torch.dtype
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    conjugated: bool
    negated: bool


def geometry_of(tensor: Tensor) -> Geometry:
    if not has_storage(tensor):
        shape = (tensor.numel(),) if tensor.is_nested else tuple(tensor.shape)
        return Geometry(tensor.dtype, 0, shape, (0,) * len(shape), False, False)
    return Geometry(
        tensor.dtype,
        int(tensor.storage_offset()),
        tuple(tensor.shape),
        tensor.stride(),
        tensor.is_conj(),
        tensor.is_neg(),
    )


class Region:
    """The bytes of a storage that a tensor of some geometry shows."""

    def __init__(self, geometry: Geometry) -> None:
        self._dims = tuple(
            sorted((n, s) for n, s in zip(geometry.shape, geometry.stride, strict=True) if n != 1 and s != 0)
        )
        self._itemsize = geometry.dtype.itemsize
        self.start = geometry.offset * self._itemsize
        empty = 0 in geometry.shape
        span = sum((n - 1) * s for n, s in self._dims) + 1
        self.end = self.start if empty else self.start + span * self._itemsize
        self.size_bytes = min(prod(n for n, _ in self._dims) * self._itemsize, self.end - self.start)

    @cached_property
    def dense(self) -> bool:
        """No gaps between the first and the last byte. Many elements are not enough: they may lie twice."""
        reached = 1
        for n, stride in sorted(self._dims, key=lambda dim: dim[1]):
            if stride > reached:
                return False
            reached += (n - 1) * stride
        return True

    def overlaps(self, other: "Region") -> bool:
        if self.start >= other.end or other.start >= self.end:
            return False
        if self.dense and other.dense:
            return True
        try:
            work: Any = OVERLAP_WORK  # NumPy's stub allows only its two special values
            return np.shares_memory(self._shadow, other._shadow, max_work=work)
        except np.exceptions.TooHardError:
            return True

    def covers(self, other: "Region") -> bool:
        """Every byte of ``other`` is here; False where that is not obvious."""
        if self.dense:
            return self.start <= other.start and other.end <= self.end
        return self.start == other.start and self._dims == other._dims and self._itemsize == other._itemsize

    def same_bytes(self, other: "Region") -> bool:
        return self.size_bytes == other.size_bytes and self.covers(other) and other.covers(self)

    @cached_property
    def _shadow(self) -> np.ndarray:
        """An array over the same addresses that is never read: NumPy solves the overlap exactly."""
        shape = tuple(n for n, _ in self._dims)
        strides = tuple(s * self._itemsize for _, s in self._dims)
        return np.asarray(_Shadow(self.start, shape, strides, self._itemsize))


class _Shadow:
    def __init__(self, start: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> None:
        somewhere = 1 << 20  # not the null pointer
        self.__array_interface__ = {
            "version": 3,
            "data": (somewhere + start, True),
            "shape": shape,
            "strides": strides,
            "typestr": f"|V{itemsize}",
        }


@lru_cache(maxsize=8192)
def region_of(geometry: Geometry) -> Region:
    return Region(geometry)


def same_elements(one: Geometry, other: Geometry) -> bool:
    """Both show the same elements of one storage, in whatever order."""
    if one[0] != other[0] or one[4:] != other[4:] or prod(one.shape) != prod(other.shape):
        return False
    first, second = region_of(one), region_of(other)
    return first.size_bytes == prod(one.shape) * one.dtype.itemsize and first.same_bytes(second)


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """An operator gave new content to some bytes, or, where ``content`` is False, merely made them.

    ``op_id`` is None where it was no operator.
    """

    op_id: OpId | None
    region: Region
    value_id: ValueId
    content: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Change:
    """What one write exchanged: elements of ``dtype``, by their offsets from the start of the storage."""

    dtype: torch.dtype
    offsets: NDArray[np.int64]  # each once
    before: Tensor
    after: Tensor


@dataclass(slots=True, kw_only=True)
class Held:
    """A value of a tensor, made after ``made`` writes of its storage and not touched by the first ``seen``.

    ``previous`` is the value that some of the writes before replaced.
    """

    value_id: ValueId
    made: int
    seen: int
    previous: "Held | None" = None


@dataclass(slots=True, kw_only=True)
class Storage:
    """One storage during one phase."""

    storage_id: int
    reference: object  # weak; kept so that no other storage gets the same identity
    size_bytes: int
    writes: list[Write] = field(default_factory=list[Write])
    current: dict[Geometry, Held] = field(default_factory=dict[Geometry, Held])
    # What a write left of a geometry, by the place of the write; None: what was there before any.
    partial: dict[tuple[Geometry, int | None], ValueId] = field(
        default_factory=dict[tuple[Geometry, int | None], ValueId]
    )
    sources: dict[Geometry, ValueId] = field(default_factory=dict[Geometry, ValueId])  # as they were met
    largest_sketched: int = 0  # elements of the largest tensor over it that has a sketch
    changes: dict[int, Change] = field(default_factory=dict[int, Change])  # by place in ``writes``

    def whole(self) -> Region:
        return Region(Geometry(torch.uint8, 0, (self.size_bytes,), (1,), False, False))

    def writers(self, region: Region, since: int = 0) -> Iterator[int]:
        """Places in ``writes`` of what ``region`` shows, newest first, back to the one that covers it."""
        for place in range(len(self.writes) - 1, since - 1, -1):
            write = self.writes[place]
            if write.region.overlaps(region):
                yield place
                if write.region.covers(region):
                    return

    def remember(self, change: Change) -> None:
        """Keep what the newest write exchanged, and of the older ones as much as is worth keeping."""
        self.changes[len(self.writes) - 1] = change
        kept = sum(one.offsets.size for one in self.changes.values())
        while kept > self.largest_sketched:
            kept -= self.changes.pop(next(iter(self.changes))).offsets.size

    def changed(self, region: Region, since: int) -> tuple[Change, ...] | None:
        """What the writes to ``region`` since then exchanged; None where that is not known of all of them."""
        later = range(since, len(self.writes))
        found = [self.changes.get(place) for place in later if self.writes[place].region.overlaps(region)]
        known = tuple(change for change in found if change is not None)
        return known if len(known) == len(found) else None

    def untouched(self, region: Region, since: int) -> bool:
        return next(self.writers(region, since), None) is None

    def has_content(self, region: Region) -> bool:
        """False where all that ``region`` shows is memory that nothing was written to."""
        places = tuple(self.writers(region))
        return not places or any(self.writes[place].content for place in places)


class Storages:
    """All storages that the operators of a phase touched."""

    def __init__(self) -> None:
        self._by_identity: dict[int, Storage] = {}
        self._count = 0

    def of(self, tensor: Tensor) -> Storage:
        storage, known = self.find(tensor)
        if not known:
            self._by_identity[_identity(tensor)] = storage
        return storage

    def find(self, tensor: Tensor) -> tuple[Storage, bool]:
        """The storage of ``tensor``, and whether it was met before."""
        identity = _identity(tensor)
        known = self._by_identity.get(identity)
        if known is not None:
            return known, True
        self._count += 1
        windowed = has_storage(tensor)
        storage = Storage(
            storage_id=self._count - 1,
            reference=weak_storage(tensor) if windowed else weak_tensor(tensor),
            size_bytes=tensor.untyped_storage().nbytes() if windowed else 0,
        )
        return storage, False

    def knows(self, tensor: Tensor) -> bool:
        return _identity(tensor) in self._by_identity

    def forget_all_but(self, kept: frozenset[int]) -> None:
        """Start a new phase with the storages of these ids only."""
        self._by_identity = {i: s for i, s in self._by_identity.items() if s.storage_id in kept}


def has_storage(tensor: Tensor) -> bool:
    """Whether the tensor is a window on memory; sparse and nested ones and wrapping subclasses are not."""
    return tensor.layout is torch.strided and not tensor.is_nested and not is_wrapper(tensor)


def is_wrapper(tensor: Tensor) -> bool:
    return type(tensor) is not Tensor and hasattr(type(tensor), "__tensor_flatten__")


def _identity(tensor: Tensor) -> int:
    return storage_identity(tensor) if has_storage(tensor) else tensor_identity(tensor)


def shows_same_memory(one: Tensor, other: Tensor) -> bool:
    return _identity(one) == _identity(other)


def shows_same_elements(one: Tensor, other: Tensor) -> bool:
    """Both show the same elements in the same order."""
    return one is other or (shows_same_memory(one, other) and geometry_of(one) == geometry_of(other))
