"""Operators of backward passes that the IR has no meaning for, in terms of others, as PyTorch has them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from torch._decomp import decomposition_table
from torch._ops import OpOverload

from scalify.load.torch_export.meaning import MEANINGS


def _is_missing(operator: object) -> bool:
    if not isinstance(operator, OpOverload):
        return False
    name = str(operator).rpartition(".")[0]
    return "backward" in name and name not in MEANINGS


DECOMPOSED: Mapping[OpOverload, Callable[..., Any]] = MappingProxyType({
    operator: definition
    for operator, definition in decomposition_table.items()
    if isinstance(operator, OpOverload) and _is_missing(operator)
})  # fmt: skip
