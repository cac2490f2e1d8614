"""When do two executions of an operator cost the same?

In: an operator and its arguments, before it runs. Out: a digest; equal digests are one class, of which
replay reads one member. The digest covers what the cost can depend on: the operator, the shape, strides,
type, place and alignment of each tensor, every argument that is no tensor, and the *content* of small
integer tensors, which hold sequence lengths, block tables, routing and indices. Floating-point content
is left out: it changes the power drawn a little and the work done not at all.

Digests are compared within one recording only. They hold no address, so that a second run of the same
step gives the same ones.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, cast

import torch

from magneton.record.torch.internals import OperatorOverload, schema_of

CONTENT_ELEMENTS = 4096  # integer tensors beyond this are data, not a description of the work
ALIGNMENT_BYTES = 64  # a cache line; vectorised kernels peel what lies before it

_INTEGERS = frozenset((torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64))
_BY_VALUE = (torch.device, torch.dtype, torch.layout, torch.memory_format, torch.SymInt, torch.SymFloat)


def operator_key(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """A digest of everything that the cost of ``func(*args, **kwargs)`` can depend on."""
    name, unread = _signature(func)
    parts = [name]
    for place, value in enumerate(args):
        _describe(value, place not in unread, parts)
    for keyword in sorted(kwargs):
        parts.append(keyword)
        _describe(kwargs[keyword], keyword not in unread, parts)
    return blake2b(";".join(parts).encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=4096)
def _signature(func: Any) -> tuple[str, frozenset[int | str]]:
    """The operator's name, and the places and names of arguments whose content does not count.

    What an operator overwrites may be fresh memory, whose content would make the key differ from run to
    run. A view reads no content at all.
    """
    arguments = schema_of(func).arguments if isinstance(func, OperatorOverload) else ()
    view = bool(getattr(func, "is_view", False))
    unread: set[int | str] = set()
    for place, argument in enumerate(arguments):
        if view or (argument.alias_info is not None and argument.alias_info.is_write):
            unread |= {place, argument.name}
    return str(func), frozenset(unread)


def _describe(value: Any, content: bool, parts: list[str]) -> None:
    """Append what counts of one argument. ``content`` allows to look at elements."""
    if isinstance(value, torch.Tensor):
        parts.append(_layout(value))
        if content and value.dtype in _INTEGERS and value.numel() <= CONTENT_ELEMENTS:
            parts.append(_content(value))
    elif value is None or isinstance(value, int | float | str | complex):
        parts.append(repr(value))
    elif isinstance(value, list | tuple):
        members = cast(Sequence[Any], value)
        parts.append(f"[{len(members)}")
        for member in members:
            _describe(member, content, parts)
    elif isinstance(value, _BY_VALUE):
        parts.append(str(value))
    else:
        parts.append(type(value).__qualname__)  # a generator, an opaque object: its repr may hold an address


def _layout(tensor: torch.Tensor) -> str:
    if tensor.layout is not torch.strided:
        return f"{tensor.shape}{tensor.dtype}{tensor.layout}{tensor.device}"
    offset = tensor.storage_offset() * tensor.element_size() % ALIGNMENT_BYTES
    return f"{tensor.shape}{tensor.stride()}{tensor.dtype}{tensor.device}{offset}"


def _content(tensor: torch.Tensor) -> str:
    """The elements in logical order; nothing where there are none to read (meta, fake, sparse)."""
    if tensor.device.type == "meta" or tensor.layout is not torch.strided or type(tensor) is not torch.Tensor:
        return ""
    return tensor.cpu().contiguous().numpy().tobytes().hex()
