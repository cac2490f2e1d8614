"""Integers that a program computes from the rank's own number: where its shard starts.

A partitioner writes ``dynamic-slice(x, table[partition-id])`` or ``partition-id * 512``. In: nodes as they
are made. Out: for each scalar integer that follows from constants and the rank alone, its value on every
rank, from which ``movement`` makes slices with bounds that are affine in the rank.
"""

import operator
from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType

from scalify.ir.graph import Attr, Node, NodeId
from scalify.ir.mesh import Mesh, RankInt, on_rank
from scalify.ir.ops.dtypes import KIND_OF
from scalify.load.ranks import affine

MAX_RANKS = 1024


def _chosen(condition: int, x: int, y: int) -> int:
    return x if condition else y


def _clamped(low: int, x: int, high: int) -> int:
    return min(max(x, low), high)


def _rest(x: int, y: int) -> int:
    """What is left of a division towards zero."""
    return abs(x) % abs(y) * (-1 if x < 0 else 1)


_OPS: Mapping[str, Callable[..., int]] = MappingProxyType(
    {
        "add": operator.add, "sub": operator.sub, "mul": operator.mul, "max": max, "min": min,
        "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
        "ge": operator.ge, "and": operator.and_, "or": operator.or_, "where": _chosen, "clamp": _clamped,
        "floordiv": operator.floordiv, "mod": operator.mod, "rem": _rest,
    }
)  # fmt: skip
_DIVIDING = frozenset({"floordiv", "mod", "rem"})
_SAME = frozenset({"reshape", "broadcast", "cast", "transpose"})

Values = tuple[int, ...]


class ByRank:
    """Values of scalar integers on ranks 0, 1, ..., as far as they are known."""

    def __init__(self, mesh: Mesh, nodes: Mapping[NodeId, Node]) -> None:
        self._mesh = mesh
        self._ranks = mesh.size
        self._nodes = nodes
        self._known: dict[NodeId, Values] = {}

    def note(self, node: Node) -> None:
        """Remember the node's values if they follow from what is known."""
        if self._ranks > MAX_RANKS or KIND_OF[node.type.dtype] not in ("int", "bool"):
            return
        if prod(node.type.shape) != 1:
            return
        values = self._values(node)
        if values is not None and node.type.dtype == "bool":
            values = tuple(int(value != 0) for value in values)
        if values is not None and _fit(values, node.type.dtype):
            self._known[node.id] = values

    def _values(self, node: Node) -> Values | None:
        ranks = range(self._ranks)
        match node.op:
            case "constant":
                number = _elements(node)[:1]
                return number * len(ranks) if number else None
            case "rank":
                stride, size = node.attrs["stride"], node.attrs["size"]
                assert isinstance(stride, int)
                assert isinstance(size, int)
                return tuple(rank // stride % size for rank in ranks)
            case "slice":
                return self._looked_up(node)
            case _ if node.op in _SAME:
                return self._known.get(node.operands[0])
            case _ if node.op in _OPS:
                return self._computed(node)
            case _:
                return None

    def _computed(self, node: Node) -> Values | None:
        operands = [self._known.get(operand) for operand in node.operands]
        columns = [operand for operand in operands if operand is not None]
        if len(columns) != len(operands) or (node.op in _DIVIDING and 0 in columns[1]):
            return None
        return tuple(int(_OPS[node.op](*row)) for row in zip(*columns, strict=True))

    def _looked_up(self, node: Node) -> Values | None:
        """One element of a table, each rank its own."""
        table, starts = self._nodes[node.operands[0]], node.attrs["starts"]
        elements = _elements(table)
        if len(table.type.shape) != 1 or not elements or not isinstance(starts, tuple):
            return None
        if len(elements) == 1:
            return elements * self._ranks
        places = [_place(starts[0], rank) for rank in range(self._ranks)]
        return tuple(elements[place] for place in places) if max(places) < len(elements) else None

    def starts(self, nodes: tuple[NodeId, ...], room: tuple[int, ...]) -> tuple[int | RankInt, ...] | None:
        """Starts of a box, each clamped to its room as XLA does, where all are affine in the rank."""
        found: list[int | RankInt] = []
        for node, most in zip(nodes, room, strict=True):
            values = self._known.get(node)
            if values is None:
                return None
            start = affine([min(max(value, 0), most) for value in values], self._mesh)
            if start is None:
                return None
            found.append(start)
        return tuple(found)


def _elements(node: Node) -> Values:
    """A constant's integers, the one for all where it is so held."""
    data = node.attrs.get("data") if node.op == "constant" else None
    if not isinstance(data, tuple) or not all(isinstance(number, int) for number in data):
        return ()
    return tuple(number for number in data if isinstance(number, int))


def _place(start: Attr, rank: int) -> int:
    assert isinstance(start, int | RankInt)
    return on_rank(start, rank)


def _fit(values: Values, dtype: str) -> bool:
    """Whether no value wraps around in its type."""
    if dtype == "bool":
        return True
    bits = int(dtype[1:])
    low, high = (0, 2**bits) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    return all(low <= value < high for value in values)


def moved(start: int | RankInt, by: int) -> int | RankInt:
    """``start + by``."""
    if isinstance(start, RankInt):
        return RankInt(base=start.base + by, terms=start.terms)
    return start + by
