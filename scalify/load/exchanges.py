"""A collective as ordinary operations over the values of its members, where all ranks stand in one graph.

In: the members' values, in the group's order. Out: each member's result. Combinations are chains in that
order; gathers are concatenations, in which members may hold pieces of different sizes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import cast

from scalify.errors import InvalidGraph
from scalify.ir.check import place
from scalify.ir.graph import Attr, Node, NodeId, TensorType
from scalify.ir.ops.dtypes import KIND_OF
from scalify.layout.maps import Shape

UNEVEN_HINT = "pad the pieces to one size before they are exchanged, as collectives of tensors do"
MEET_HINT = "every rank of a group runs the same collectives in the same order"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A rank in a collective: its own node, and the value that it brings."""

    rank: int
    node: Node
    value: NodeId
    type: TensorType

    def __str__(self) -> str:
        return f"rank {self.rank}'s {place(self.node)}"


Emit = Callable[[Member, str, tuple[NodeId, ...], Mapping[str, Attr], TensorType], NodeId]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective of one group. ``emit`` adds a node like the one of a member: op, operands, attributes."""

    members: Sequence[Member]
    emit: Emit

    @property
    def first(self) -> Member:
        return self.members[0]

    def results(self) -> list[NodeId]:
        """What each member has after it."""
        self._check_alike()
        return _RESULTS[self.first.node.op](self)

    def integer(self, name: str) -> int:
        """An attribute that is one."""
        return cast(int, self.first.node.attrs[name])

    def _check_alike(self) -> None:
        """All run the same op with the same attributes, and bring what fits together."""
        first = self.first
        for other in self.members[1:]:
            if _kind(first.node) != _kind(other.node):
                raise InvalidGraph(f"{first} meets {other}, which is another collective", hint=MEET_HINT)
            sizes = _shape_that_agrees(first), _shape_that_agrees(other)
            if sizes[0] != sizes[1] or first.type.dtype != other.type.dtype:
                raise InvalidGraph(
                    f"{first} brings {list(first.type.shape)}, {other} {list(other.type.shape)}",
                    hint=UNEVEN_HINT,
                )


def _kind(node: Node) -> tuple[str, dict[str, Attr]]:
    return node.op, {name: value for name, value in node.attrs.items() if name != "groups"}


def _shape_that_agrees(member: Member) -> Shape:
    """The shape without the dimension in which pieces of a gather may differ."""
    shape, dim = member.type.shape, member.node.attrs.get("dim")
    if member.node.op != "all_gather" or not isinstance(dim, int):
        return shape
    return (*shape[:dim], -1, *shape[dim + 1 :])


def _all_reduce(exchange: Exchange) -> list[NodeId]:
    return [_combined(exchange)] * len(exchange.members)


_CHAINED = {"sum": "add", "avg": "add", "max": "max", "min": "min", "prod": "mul"}
_OF_TRUTH = {"sum": "or", "avg": "or", "max": "or", "min": "and", "prod": "and"}


def _combined(exchange: Exchange) -> NodeId:
    """All values combined, one after the other. A mean of integers is whole."""
    first, kind = exchange.first, str(exchange.first.node.attrs["kind"])
    truth = first.type.dtype == "bool"
    op = (_OF_TRUTH if truth else _CHAINED)[kind]
    value = first.value
    for member in exchange.members[1:]:
        value = exchange.emit(first, op, (value, member.value), {}, first.type)
    if kind != "avg" or truth:
        return value
    whole = KIND_OF[first.type.dtype] == "int"
    made = TensorType("f64", first.type.shape) if whole else first.type
    numbers = (float(len(exchange.members)), 0.0) if KIND_OF[made.dtype] == "complex" else None
    count: dict[str, Attr] = {"data": numbers or (float(len(exchange.members)),)}
    divisor = exchange.emit(first, "constant", (), count, TensorType(made.dtype, ()))
    mean = exchange.emit(first, "div", (value, divisor), {}, made)
    return exchange.emit(first, "cast", (mean,), {}, first.type) if whole else mean


def _all_gather(exchange: Exchange) -> list[NodeId]:
    dim = exchange.integer("dim")
    total = sum(member.type.shape[dim] for member in exchange.members)
    for member in exchange.members:
        stated = member.node.type.shape[dim]
        if stated != total:
            raise InvalidGraph(
                f"{member} has {stated} elements along dimension {dim}, but all members bring {total}",
                hint=UNEVEN_HINT,
            )
    values = tuple(member.value for member in exchange.members)
    made = exchange.emit(exchange.first, "concat", values, {"axis": dim}, exchange.first.node.type)
    return [made] * len(exchange.members)


def _reduce_scatter(exchange: Exchange) -> list[NodeId]:
    """Parts are as large as the members say."""
    dim, total = exchange.integer("dim"), _combined(exchange)
    sizes = [member.node.type.shape[dim] for member in exchange.members]
    if sum(sizes) != exchange.first.type.shape[dim]:
        raise InvalidGraph(
            f"parts of {', '.join(map(str, sizes))} of {exchange.first} are not the whole", hint=UNEVEN_HINT
        )
    ends = list(accumulate(sizes))
    return [
        _cut(exchange, member, total, dim, end - size, end)
        for member, size, end in zip(exchange.members, sizes, ends, strict=True)
    ]


def _cut(exchange: Exchange, member: Member, value: NodeId, dim: int, start: int, end: int) -> NodeId:
    """A window of a value that has the shape of what the member brings."""
    shape = member.type.shape
    starts = tuple(start if d == dim else 0 for d in range(len(shape)))
    limits = tuple(end if d == dim else size for d, size in enumerate(shape))
    attrs: dict[str, Attr] = {"starts": starts, "limits": limits, "steps": (1,) * len(shape)}
    sizes = tuple(limit - first for first, limit in zip(starts, limits, strict=True))
    return exchange.emit(member, "slice", (value,), attrs, TensorType(member.type.dtype, sizes))


def _all_to_all(exchange: Exchange) -> list[NodeId]:
    """Equal parts: their sizes follow from the shapes, which are equal."""
    split, axis = exchange.integer("split_dim"), exchange.integer("concat_dim")
    size = exchange.first.type.shape[split] // len(exchange.members)
    results: list[NodeId] = []
    for number, member in enumerate(exchange.members):
        pieces = tuple(
            _cut(exchange, other, other.value, split, number * size, (number + 1) * size)
            for other in exchange.members
        )
        results.append(exchange.emit(member, "concat", pieces, {"axis": axis}, member.node.type))
    return results


def _broadcast_from(exchange: Exchange) -> list[NodeId]:
    return [exchange.members[exchange.integer("root")].value] * len(exchange.members)


def _permute(exchange: Exchange) -> list[NodeId]:
    """The members are all ranks. One that nobody sends to has zeros."""
    pairs = cast("tuple[tuple[int, int], ...]", exchange.first.node.attrs["pairs"])
    sources = {target: source for source, target in pairs}
    return [
        exchange.members[sources[member.rank]].value if member.rank in sources else _zeros(exchange, member)
        for member in exchange.members
    ]


_ZERO: Mapping[str, tuple[Attr, ...]] = {
    "bool": (False,),
    "int": (0,),
    "float": (0.0,),
    "complex": (0.0, 0.0),
}


def _zeros(exchange: Exchange, member: Member) -> NodeId:
    data = _ZERO[KIND_OF[member.type.dtype]]
    return exchange.emit(member, "constant", (), {"data": data}, member.type)


_RESULTS: Mapping[str, Callable[[Exchange], list[NodeId]]] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_to_all": _all_to_all,
    "broadcast_from": _broadcast_from,
    "permute": _permute,
}
