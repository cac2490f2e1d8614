"""Where a program jumps: how near each decision is to falling otherwise, against what noise does to it.

A comparison hangs on a difference, a whole number on the distance to the next one, an order on the gaps
between neighbours. Whether noise did tip a decision in a few runs says little (of equal numbers computed in
two ways none may ever come out equal), so what is measured is what decides, and how far noise moves it.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import cast

import numpy as np

from scalify.ir.evaluate import PerRank
from scalify.ir.graph import Node, NodeId
from scalify.ir.ops.dtypes import KIND_OF
from scalify.ir.ops.spec import Array

_DIFFERENCES = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_QUOTIENTS = frozenset({"floordiv", "mod", "rem"})
_ORDERS = frozenset({"argmax", "argmin", "argsort", "topk_indices"})
_STEPS: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {
        "floor": lambda x: np.abs(x - np.rint(x)),
        "ceil": lambda x: np.abs(x - np.rint(x)),
        "trunc": lambda x: np.where(np.rint(x) == 0, np.inf, np.abs(x - np.rint(x))),
        "round": lambda x: np.abs(x - np.floor(x) - 0.5),
        "sign": np.abs,
    }
)
JUMPING = _DIFFERENCES | _QUOTIENTS | _ORDERS | frozenset(_STEPS) | {"cast"}


class Jumps:
    """What decides at every jump of a program: as it is, and how far noise moved it at most."""

    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._plain: dict[NodeId, PerRank] = {}
        self._spread: dict[NodeId, PerRank] = {}

    def record(self, node: Node, operands: Sequence[PerRank]) -> None:
        """Without noise."""
        if decides(node, operands):
            self._plain[node.id] = _measured(node, operands)

    def compare(self, node: Node, operands: Sequence[PerRank]) -> None:
        """With noise."""
        if node.id not in self._plain:
            return
        plain, noisy = self._plain[node.id], _measured(node, operands)
        moved = _each(_moved, plain, noisy)
        known = self._spread.get(node.id)
        self._spread[node.id] = moved if known is None else _each(np.maximum, known, moved)

    def near(self, node: Node) -> PerRank | None:
        """The elements of a node's result that may fall otherwise; None if the node does not jump."""
        if node.id not in self._spread:
            return None

        def near(plain: Array, spread: Array) -> Array:
            return _near(node, plain, self._factor * spread)

        return _each(near, self._plain[node.id], self._spread[node.id])


def decides(node: Node, operands: Sequence[PerRank]) -> bool:
    """Whether a node jumps where real numbers do not."""
    if node.op not in JUMPING or not any(values[0].dtype.kind in "fc" for values in operands):
        return False
    return node.op != "cast" or KIND_OF[node.type.dtype] in ("int", "bool")


def _measured(node: Node, operands: Sequence[PerRank]) -> PerRank:
    if node.op in _DIFFERENCES:
        return _each(_difference, *operands)
    if node.op in _QUOTIENTS:
        return _each(np.divide, *operands)
    return operands[0]


def _difference(one: Array, other: Array) -> Array:
    wide = np.complex128 if "c" in one.dtype.kind + other.dtype.kind else np.float64
    return one.astype(wide) - other.astype(wide)


def _moved(one: Array, other: Array) -> Array:
    """How far; not at all where both are infinite."""
    return np.nan_to_num(np.abs(one - other), posinf=np.inf)


def _each(function: Callable[..., Array], *values: PerRank) -> PerRank:
    """On every rank; ranks that share operands share the result."""
    done: dict[tuple[int, ...], Array] = {}
    results: PerRank = []
    for arrays in zip(*values, strict=True):
        key = tuple(map(id, arrays))
        if key not in done:
            done[key] = function(*arrays)
        results.append(done[key])
    return results


def _near(node: Node, plain: Array, reach: Array) -> Array:
    if node.op in _DIFFERENCES:
        return _within(np.abs(plain), reach)
    if node.op in _QUOTIENTS:
        return _within(np.abs(plain - np.rint(plain)), reach)
    if node.op in _ORDERS:
        return _disordered(node, plain, reach)
    if node.op == "cast":
        step = "sign" if KIND_OF[node.type.dtype] == "bool" else "trunc"
        return _within(_STEPS[step](np.asarray(np.real(plain)) if step == "trunc" else plain), reach)
    return _within(_STEPS[node.op](plain), reach)


def _within(distance: Array, reach: Array) -> Array:
    """Exact numbers decide exactly."""
    return np.asarray((reach > 0) & (distance <= reach))


def _disordered(node: Node, plain: Array, reach: Array) -> Array:
    """Of orders, also equals: which of them comes first is not the same everywhere."""
    axis = cast(int, node.attrs["axis"])
    rising = not (node.op == "argmax" or node.attrs.get("largest") or node.attrs.get("descending"))
    order = np.argsort(plain if rising else -plain, axis=axis, kind="stable")
    values, reaches = (np.take_along_axis(each, order, axis) for each in (plain, reach))
    along = np.moveaxis(values, axis, -1)
    reaches = np.moveaxis(reaches, axis, -1)
    if node.op in ("argmax", "argmin"):
        gap, reached = np.abs(along - along[..., :1]), reaches + reaches[..., :1]
        found = _within(gap, reached)[..., 1:].any(axis=-1)
        return np.expand_dims(found, axis) if node.attrs.get("keepdims") else np.asarray(found)
    with np.errstate(invalid="ignore"):
        tied = np.abs(np.diff(along)) <= reaches[..., 1:] + reaches[..., :-1]
    tied |= along[..., 1:] == along[..., :-1]  # of infinities there is no difference
    found = np.zeros(along.shape, dtype=np.bool_)
    found[..., 1:] |= tied
    found[..., :-1] |= tied
    count = cast(int, node.attrs.get("k", along.shape[-1]))
    return np.moveaxis(found[..., :count], -1, axis)
