"""What an operator does with its arguments, read off its schema.

In: an operator as the dispatcher hands it over. Out: which of its arguments are tensors, which of those it
overwrites and which it overwrites without reading, and what kind of effect it has.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor

from magneton.profile.model import Effect
from magneton.record.torch.internals import OperatorOverload, has_kernel, schema_of

_ALLOCATING = frozenset(
    f"aten::{name}"
    for name in (
        "empty",
        "empty_like",
        "empty_strided",
        "empty_permuted",
        "new_empty",
        "new_empty_strided",
        "resize",
        "resize_",
    )
)
# Give all of their first argument new content, whatever it held.
FILLING = frozenset(
    f"aten::{name}"
    for name in (
        "copy_",
        "fill_",
        "zero_",
        "uniform_",
        "normal_",
        "random_",
        "exponential_",
        "log_normal_",
        "cauchy_",
        "geometric_",
        "bernoulli_",
    )
)
_OVERWRITING = FILLING | {"aten::_foreach_copy_", "aten::_foreach_zero_", "aten::resize_", "aten::set_"}
# Collectives overwrite these arguments, though their schemas do not say so.
_OVERWRITTEN_UNSAID = {
    "c10d::allreduce_": "tensors",
    "c10d::allreduce_coalesced_": "tensors",
    "c10d::broadcast_": "tensors",
    "c10d::reduce_": "tensors",
    "c10d::allgather_": "output_tensors",
    "c10d::_allgather_base_": "output_tensor",
    "c10d::reduce_scatter_": "output_tensors",
    "c10d::_reduce_scatter_base_": "output_tensor",
    "c10d::scatter_": "output_tensors",
    "c10d::gather_": "output_tensors",
    "c10d::alltoall_": "output_tensors",
    "c10d::alltoall_base_": "output",
    "c10d::recv_": "tensors",
}
_SYNCHRONISING = frozenset((torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape))


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What the schema says about every call of one operator."""

    name: str  # "aten::add_", without the overload
    arguments: tuple[str, ...]
    written: frozenset[str]  # arguments that are overwritten
    unread: frozenset[str]  # those of them whose old content does not matter
    reshapes: bool  # changes an argument's geometry, not its memory
    allocates: bool
    synchronises: bool
    random: bool
    pointwise: bool
    decomposes: bool  # a composite that reaches a mode whole only because no gradient is tracked
    is_native: bool  # of PyTorch itself


@lru_cache(maxsize=4096)
def signature_of(func: Callable[..., Any]) -> Signature:
    if not isinstance(func, OperatorOverload):
        return _opaque(func)
    schema, tags = schema_of(func), frozenset(func.tags)
    written = frozenset(
        a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write
    )
    written |= {a.name for a in schema.arguments if a.name == _OVERWRITTEN_UNSAID.get(schema.name)}
    out = frozenset(a.name for a in schema.arguments if a.is_out)
    return Signature(
        name=schema.name,
        arguments=tuple(a.name for a in schema.arguments),
        written=written,
        unread=written if schema.name in _OVERWRITING else out,
        reshapes=torch.Tag.inplace_view in tags,
        allocates=schema.name in _ALLOCATING,
        synchronises=bool(_SYNCHRONISING & tags) and schema.name != "aten::index",
        random=torch.Tag.nondeterministic_seeded in tags,
        pointwise=torch.Tag.pointwise in tags,
        decomposes=_decomposes(func),
        is_native=_is_native(schema.name),
    )


def _opaque(func: Callable[..., Any]) -> Signature:
    """A higher-order operator: no schema, so all it is given is read and nothing overwritten."""
    return Signature(
        name=str(getattr(func, "__name__", func)),
        arguments=(),
        written=frozenset(),
        unread=frozenset(),
        reshapes=False,
        allocates=False,
        synchronises=False,
        random=False,
        pointwise=False,
        decomposes=False,
        is_native=True,
    )


def _is_native(name: str) -> bool:
    return name.partition("::")[0] in ("aten", "prims", "prim")


def _decomposes(func: OperatorOverload) -> bool:
    """PyTorch's own composites call other operators; those of others may work on bare memory."""
    name = func.name()
    if not _is_native(name):
        return False
    own_kernel = any(has_kernel(name, key) for key in ("CPU", "CUDA", "CompositeExplicitAutograd"))
    return has_kernel(name, "CompositeImplicitAutograd") and not own_kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call, its tensors sorted by what happens to them."""

    signature: Signature
    given: Mapping[str, Any]  # every argument by name
    tensors: tuple[Tensor, ...]  # positional, then keyword, lists flattened
    written: tuple[Tensor, ...]
    unread: frozenset[int]  # places in ``tensors`` whose old content does not matter

    @property
    def changes_arguments(self) -> bool:
        """Whether arguments have to be looked at before the call; also where no schema says that not."""
        return bool(self.signature.written) or not self.signature.arguments


def inspect_call(func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
    signature = signature_of(func)
    names = signature.arguments or tuple(f"argument{place}" for place in range(len(args)))
    given = dict(zip(names, args, strict=False)) | dict(kwargs)
    tensors: list[Tensor] = []
    written: list[Tensor] = []
    unread: set[int] = set()
    keeps_content = signature.reshapes or signature.allocates
    for name, argument in given.items():
        for tensor in tensors_in(argument):
            if name in signature.written and not keeps_content:
                written.append(tensor)
            if name in signature.unread:
                unread.add(len(tensors))
            tensors.append(tensor)
    return Call(
        signature=signature,
        given=given,
        tensors=tuple(tensors),
        written=tuple(written),
        unread=frozenset(unread),
    )


def tensors_in(argument: object) -> Iterator[Tensor]:
    """Every tensor inside nested lists, tuples and mappings, in order."""
    if isinstance(argument, Tensor):
        yield argument
    elif isinstance(argument, list | tuple):
        for member in cast(Sequence[object], argument):
            yield from tensors_in(member)
    elif isinstance(argument, Mapping):
        for member in cast(Mapping[object, object], argument).values():
            yield from tensors_in(member)


def effect_of(call: Call, results: Sequence[Tensor], *, all_shown: bool) -> Effect:
    """``all_shown``: every result lies in memory that was there before the call."""
    signature = call.signature
    if signature.allocates:
        return "alloc"
    if signature.reshapes or (all_shown and results and not call.written):
        return "view"
    if signature.synchronises or _masks_by_bool(call) or _leaves_device(call, results):
        return "sync"
    return "random" if signature.random and _draws(call) else "compute"


def _draws(call: Call) -> bool:
    """Dropout that is switched off draws nothing."""
    if "dropout_p" in call.signature.arguments:
        return call.given.get("dropout_p", 0.0) != 0.0
    return call.given.get("train") is not False


def _masks_by_bool(call: Call) -> bool:
    """Indexing with a mask has to find out on the host how many elements there are."""
    if call.signature.name != "aten::index":
        return False
    return any(index.dtype in (torch.bool, torch.uint8) for index in tensors_in(call.given["indices"]))


def _leaves_device(call: Call, results: Sequence[Tensor]) -> bool:
    if call.signature.name not in ("aten::_to_copy", "aten::copy_"):
        return False
    here = {t.device.type for t in call.tensors}
    there = {t.device.type for t in results}
    return "cpu" in there and bool(here - {"cpu"})
