"""Scalars that follow from constants: what a program in the making knows while it is written."""

import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from scalify.load.hlo.literals import STORAGE
from scalify.load.hlo.program import Shape

INTEGERS = frozenset(name for name, storage in STORAGE.items() if storage[1] in "iu" and name[0] in "su")


def _truncated(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _rest(x: int, y: int) -> int:
    return x - _truncated(x, y) * y


def _chosen(condition: int, x: int, y: int) -> int:
    return x if condition else y


_FOLDED: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": _truncated,
        "remainder": _rest, "maximum": max, "minimum": min, "convert": operator.index,
        "negate": operator.neg, "select": _chosen, "EQ": operator.eq, "NE": operator.ne, "LT": operator.lt,
        "LE": operator.le, "GT": operator.gt, "GE": operator.ge,
    }
)  # fmt: skip
_OF_TRUTHS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"and": operator.and_, "or": operator.or_, "xor": operator.xor, "not": operator.not_}
)


def is_whole(shape: Shape) -> bool:
    """Whether its elements are whole numbers or truths."""
    return shape.element == "pred" or shape.element in INTEGERS


def folded(opcode: str, operands: Sequence[int | None], of_truths: bool, shape: Shape) -> int | None:
    """The scalar that an operation on known ones makes, where it fits its type."""
    function = _FOLDED.get(opcode) or (_OF_TRUTHS.get(opcode) if of_truths else None)
    known = [operand for operand in operands if operand is not None]
    if shape.dims or function is None or not known or len(known) < len(operands) or not is_whole(shape):
        return None
    if opcode in ("divide", "remainder") and not known[1]:
        return None
    value = int(function(*known))
    return value if _fits(value, shape.element) else None


def _fits(value: int, element: str) -> bool:
    if element == "pred":
        return value in (0, 1)
    limits = np.iinfo(STORAGE[element])
    return int(limits.min) <= value <= int(limits.max)
