"""Operators that the IR has no meaning for, in terms of others, as PyTorch has them.

Those of PyTorch's table of decompositions, and those that do one thing to each tensor of a list.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import torch
from torch._decomp import decomposition_table
from torch._ops import OpOverload

from scalify.load.torch_export.aliasing import IGNORED, draws
from scalify.load.torch_export.meaning import MEANINGS

_OF_EACH = "_foreach_"
# Those of another name, and those whose factor goes by name.
_SINGLE = {"norm": "linalg_vector_norm"}
_FACTORED = frozenset({"addcmul", "addcmul_", "addcdiv", "addcdiv_"})
# Written to without saying so in the name: the running statistics.
_STATISTICS = frozenset({"aten._native_batch_norm_legit"})


def has_meaning(operator: OpOverload) -> bool:
    """Whether the IR has one for at least some of its uses."""
    base, _, overload = str(operator).rpartition(".")
    plain = base.removesuffix("_")
    return not {base, plain, f"{base}.{overload}"}.isdisjoint(MEANINGS)


def _is_missing(operator: OpOverload) -> bool:
    if has_meaning(operator) or str(operator) in IGNORED or draws(str(operator)):
        return False
    writes = operator._schema.is_mutable  # pyright: ignore[reportPrivateUsage]
    return not writes or str(operator).rpartition(".")[0] in _STATISTICS


def _of_each() -> Iterator[tuple[OpOverload, Callable[..., Any]]]:
    # Packets that nobody has used yet are in no list but this one.
    named = torch._C._dispatch_get_all_op_names()  # pyright: ignore[reportPrivateUsage]
    for packet in {
        name.removeprefix("aten::").partition(".")[0]
        for name in named
        if name.startswith(f"aten::{_OF_EACH}")
    }:
        found = getattr(torch.ops.aten, packet)
        single = packet.removeprefix(_OF_EACH)
        single = _SINGLE.get(single, single)
        for overload in found.overloads() if hasattr(torch.ops.aten, single) else ():
            if not overload.endswith("out"):
                yield getattr(found, overload), _one_after_the_other(single)


def _one_after_the_other(name: str) -> Callable[..., Any]:
    """What an operator of lists does: lists are taken apart, all else goes to each."""
    operator: Callable[..., Any] = getattr(torch.ops.aten, name)

    def apply(*args: object, **kwargs: object) -> object:
        if name in _FACTORED and len(args) > 3:
            args, kwargs = args[:3], {**kwargs, "value": args[3]}
        given = [*args, *kwargs.values()]
        count = next(len(cast("Sequence[object]", one)) for one in given if isinstance(one, list | tuple))
        made = [
            operator(
                *(_part(one, number) for one in args),
                **{key: _part(one, number) for key, one in kwargs.items()},
            )
            for number in range(count)
        ]
        return None if name.endswith("_") else made

    return apply


def _part(value: object, number: int) -> object:
    return cast("Sequence[object]", value)[number] if isinstance(value, list | tuple) else value


def _table() -> Iterator[tuple[OpOverload, Callable[..., Any]]]:
    for operator, definition in decomposition_table.items():
        if isinstance(operator, OpOverload) and _is_missing(operator):
            yield operator, definition


DECOMPOSED: Mapping[OpOverload, Callable[..., Any]] = MappingProxyType({**dict(_table()), **dict(_of_each())})
