"""May this operator be run again and again on its real inputs, and what has to be put back?

In: an operator and its arguments. Out: a reason not to repeat it, or a ``Restore`` that undoes one
execution. Whoever overwrites without reading (``out=``, ``copy_``, cache writes) leaves the same content
however often it runs; whoever reads what it overwrites (``add_``) needs the old content back before each
execution. Random operators are put back once, so that the step's own execution draws the same numbers.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch

from magneton.record.torch.calls import FILLING, tensors_in
from magneton.record.torch.internals import OperatorOverload, schema_of

RESTORE_CAP_BYTES = 256 * 2**20  # of overwritten arguments that are kept aside

COLLECTIVES = frozenset(("c10d", "_c10d_functional", "c10d_functional", "_c10d_functional_autograd"))
UNDECLARED_VIEW = "aten::_unsafe_view"  # its schema promises fresh memory
# Known to talk to other ranks though their schemas do not say so.
STATEFUL = frozenset(
    ("vllm::all_reduce", "vllm::all_gather", "vllm::reduce_scatter", "sglang::inplace_all_reduce")
)
# Overwrite their first argument, or parts of it that do not depend on what was there.
OVERWRITERS = FILLING | {
    "aten::index_copy_",
    "aten::index_fill_",
    "aten::masked_fill_",
    "aten::masked_scatter_",
    "aten::scatter_",
    "_C_cache_ops::reshape_and_cache",
    "_C_cache_ops::reshape_and_cache_flash",
}


def reason_to_skip(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """Why ``func`` must not be run more often than the step does, or None."""
    if not isinstance(func, OperatorOverload):
        return "a higher-order operator"
    static = _static_reason(func)
    if static is not None:
        return static
    may_view = func.is_view or schema_of(func).name == UNDECLARED_VIEW
    if may_view and _returns_argument_memory(func, args, kwargs):
        return "view: moves nothing"
    size_bytes = sum(_size_bytes(tensor) for tensor in tensors_to_restore(func, args, kwargs))
    if size_bytes > RESTORE_CAP_BYTES:
        return f"overwrites {size_bytes >> 20} MiB that it may read, more than are kept aside"
    return None


@lru_cache(maxsize=4096)
def _static_reason(func: OperatorOverload) -> str | None:
    """What the operator itself rules out, whatever its arguments."""
    if func.namespace in COLLECTIVES:
        return "collective"
    if schema_of(func).name in STATEFUL:
        return "changes state that its schema does not declare"
    if torch.Tag.inplace_view in func.tags:
        return "changes the shape or storage of its argument"
    if torch.Tag.data_dependent_output in func.tags or torch.Tag.dynamic_output_shape in func.tags:
        return "sync: brings data to the host"
    return None


def _returns_argument_memory(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """``reshape`` and ``to`` may return a view and may copy: only trying tells, and does no harm."""
    return _share_memory(tuple(tensors_in(func(*args, **kwargs))), tuple(tensors_in((args, kwargs))))


def tensors_to_restore(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[torch.Tensor, ...]:
    """Overwritten arguments whose old content one execution may have read."""
    written: list[torch.Tensor] = []
    read: list[torch.Tensor] = []
    for place, argument in enumerate(schema_of(func).arguments):
        value = args[place] if place < len(args) else kwargs.get(argument.name)
        writes = argument.alias_info is not None and argument.alias_info.is_write
        (written if writes else read).extend(tensors_in(value))
    if _overwrites(func, args, kwargs) and not _share_memory(written, read):
        return ()
    return tuple(written)


def _overwrites(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Is all that ``func`` writes independent of what was there?"""
    if any(argument.is_out for argument in schema_of(func).arguments):
        return True
    name = schema_of(func).name
    if name == "aten::index_put_" or name == "aten::_index_put_impl_":
        accumulate = args[3] if len(args) > 3 else kwargs.get("accumulate", False)
        return not accumulate
    return name in OVERWRITERS and "reduce" not in kwargs


def _share_memory(some: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    storages = {_storage(tensor) for tensor in some}
    return any(_storage(tensor) in storages for tensor in others)


def _storage(tensor: torch.Tensor) -> int:
    """An identity of the memory; of the tensor itself where it has no storage of its own (sparse)."""
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else id(tensor)


def _size_bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


class Restore:
    """Puts back what one execution overwrote. False where there is nothing to put back."""

    def __init__(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._pairs = tuple((tensor, tensor.clone()) for tensor in tensors_to_restore(func, args, kwargs))

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def __call__(self) -> None:
        for tensor, kept in self._pairs:
            tensor.copy_(kept)


@contextmanager
def same_draws_after(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Generator[None]:
    """Inside, ``func`` may draw random numbers; afterwards the generators are as they were."""
    if torch.Tag.nondeterministic_seeded not in func.tags:
        yield
        return
    generators = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Generator)]
    states = [(generator, generator.get_state()) for generator in generators or _default_generators()]
    try:
        yield
    finally:
        for generator, state in states:
            generator.set_state(state)


def _default_generators() -> tuple[torch.Generator, ...]:
    on_devices = tuple(torch.cuda.default_generators) if torch.cuda.is_available() else ()
    return (torch.default_generator, *on_devices)
