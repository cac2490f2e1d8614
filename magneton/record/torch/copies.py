"""Copies of an operator's arguments, so that repeating it does not find them in the cache.

In: the arguments and how large the last cache is. Out: enough sets of arguments that between two uses of one
set several times the cache goes by, or the reason why there are none. Arguments that share memory share it
in each copy; of a large tensor only the bytes between the first and the last element in use are copied.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from magneton.record.torch.calls import inspect_call, tensors_in

TIMES_THE_CACHE = 4  # go by between two uses of one copy
MOST_COPIES = 2048  # what small arguments would need beyond that costs more to make than to read
COPIES_CAP_BYTES = 2 * 2**30
ALIGNMENT = 64  # of memory that starts a copy, in the original and in the copy

WRITES = "they write into their arguments"
FOREIGN = "their arguments are not plain tensors"
READS_NOTHING = "they read no tensor"
TOO_SMALL = f"more than {MOST_COPIES} copies of their arguments would be needed"
TOO_LARGE = (
    f"copies of their arguments would take more than {COPIES_CAP_BYTES >> 30} GiB or half of what is free"
)
UNKNOWN = "the size of the last cache is not known"

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@dataclass(slots=True, kw_only=True)
class _Span:
    """Bytes of one storage that arguments use."""

    start: int
    stop: int
    of: Tensor

    def grow(self, start: int, stop: int) -> None:
        self.start, self.stop = min(self.start, start), max(self.stop, stop)


def copied(
    func: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    cache_bytes: int,
    cap_bytes: int | None = None,
) -> tuple[tuple[Arguments, ...], str]:
    """Sets of arguments, the given one first, and ""; or that one alone, and why.

    ``cap_bytes``: that copies may take; None asks how much is free.
    """
    given: Arguments = (tuple(args), dict(kwargs))
    if cache_bytes <= 0:
        return (given,), UNKNOWN
    if inspect_call(func, args, kwargs).changes_arguments:
        return (given,), WRITES
    tensors = tuple(tensors_in((*args, kwargs)))
    if not all(map(_is_plain, tensors)):
        return (given,), FOREIGN
    spans = _spans(tensors)
    size_bytes = sum(span.stop - span.start for span in spans.values())
    if size_bytes == 0:
        return (given,), READS_NOTHING
    more = -(-TIMES_THE_CACHE * cache_bytes // size_bytes)
    if more >= MOST_COPIES:
        return (given,), TOO_SMALL
    if more * size_bytes > (_to_spare_bytes(tensors[0].device) if cap_bytes is None else cap_bytes):
        return (given,), TOO_LARGE
    return (given, *(_copy(given, spans) for _ in range(more))), ""


@cache
def last_level_bytes(device: torch.device) -> int:
    """How large the last cache in front of a device's memory is; 0 where that is not told."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).L2_cache_size)
    return processor_cache_bytes(CACHES)


def processor_cache_bytes(folder: Path) -> int:
    """The size of the highest level that Linux describes in ``folder``."""
    sizes: dict[int, int] = {}
    for place in folder.glob("index*"):
        try:
            level, size = (place / "level").read_text().strip(), (place / "size").read_text().strip()
        except OSError:
            continue
        if level.isdecimal() and size[:-1].isdecimal() and size[-1:] in _UNITS:
            sizes[int(level)] = max(sizes.get(int(level), 0), int(size[:-1]) * _UNITS[size[-1]])
    return sizes[max(sizes)] if sizes else 0


def _to_spare_bytes(device: torch.device) -> int:
    """What copies may take of a device's memory."""
    if device.type == "cuda":
        free_bytes, _ = torch.cuda.mem_get_info(device)
    else:
        free_bytes = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(COPIES_CAP_BYTES, free_bytes // 2)


_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _is_plain(tensor: Tensor) -> bool:
    """What a storage, an offset, a shape and strides describe completely."""
    return (
        tensor.layout is torch.strided
        and type(tensor) in (Tensor, torch.nn.Parameter)
        and tensor.device.type in ("cpu", "cuda")
        and not (tensor.is_quantized or tensor.is_conj() or tensor.is_neg())
    )


def _spans(tensors: Sequence[Tensor]) -> dict[int, _Span]:
    spans: dict[int, _Span] = {}
    for tensor in tensors:
        if tensor.numel() == 0:
            continue
        item = tensor.element_size()
        first = int(tensor.storage_offset()) * item
        reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        start, stop = first // ALIGNMENT * ALIGNMENT, first + (reach + 1) * item
        known = spans.setdefault(_memory(tensor), _Span(start=start, stop=stop, of=tensor))
        known.grow(start, stop)
    return spans


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _copy(given: Arguments, spans: Mapping[int, _Span]) -> Arguments:
    copies = {memory: _copied_bytes(span) for memory, span in spans.items()}

    def again(tensor: Tensor) -> Tensor:
        if tensor.numel() == 0:
            return tensor.clone()
        memory = _memory(tensor)
        offset = tensor.storage_offset() - spans[memory].start // tensor.element_size()
        fresh = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        return fresh.set_(copies[memory].untyped_storage(), offset, tensor.shape, tensor.stride())

    args, kwargs = given
    return tuple(_replaced(args, again)), {name: _replaced(value, again) for name, value in kwargs.items()}


def _copied_bytes(span: _Span) -> Tensor:
    whole = torch.empty(0, dtype=torch.uint8, device=span.of.device)
    whole.set_(span.of.untyped_storage(), span.start, (span.stop - span.start,), (1,))
    return whole.clone()


def _replaced(value: Any, again: Callable[[Tensor], Tensor]) -> Any:
    """``value`` with its tensors copied, through nested lists and tuples."""
    if isinstance(value, Tensor):
        return again(value)
    if isinstance(value, list | tuple):
        members = [_replaced(member, again) for member in cast(Sequence[object], value)]
        return members if isinstance(value, list) else tuple(members)
    if isinstance(value, Mapping):
        return {name: _replaced(member, again) for name, member in cast(Mapping[str, object], value).items()}
    return value
