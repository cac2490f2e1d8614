"""One small change to the program with which its outputs come out right.

Some of what a program on ranks computes is nowhere in the baseline: which rows of a table are a rank's own,
which positions a mask lets through. No right value can be put in the place of such a node. So the node itself
is changed, in the ways in which such code is mistaken: by one, by the other comparison, by another operand.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from time import process_time
from types import MappingProxyType

from scalify.errors import InvalidGraph
from scalify.ir.graph import Attr, Node, NodeId
from scalify.ir.mesh import Mesh, MeshAxis, RankInt
from scalify.ir.ops import type_of
from scalify.localize.align import LEAVES
from scalify.localize.text import attr_text
from scalify.localize.values.trial import Trials

LONGEST_S = 4.0
MOST_NODES = 40
MOST_ELEMENTS = 4
NEARBY = 12

_RELATIVES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "lt": ("le", "gt", "ge"),
    "le": ("lt", "ge", "gt"),
    "gt": ("ge", "lt", "le"),
    "ge": ("gt", "le", "lt"),
    "eq": ("ne",),
    "ne": ("eq",),
    "and": ("or",),
    "or": ("and",),
    "add": ("sub",),
    "sub": ("add",),
    "mul": ("div",),
    "div": ("mul",),
    "max": ("min",),
    "min": ("max",),
    "tril": ("triu",),
    "triu": ("tril",),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Repair:
    """The node that was changed, and how, for people."""

    node: Node
    text: str


@dataclass(frozen=True, slots=True)
class _Around:
    """What stands around the nodes that are changed: all before them, what nothing reads, and the ranks."""

    cone: Sequence[Node]
    nodes: Mapping[NodeId, Node]
    places: Mapping[NodeId, int]
    unread: frozenset[NodeId]
    axes: Sequence[MeshAxis]
    mesh: Mesh


def repaired(trials: Trials, cone: Sequence[Node], lasts: Collection[NodeId]) -> Repair | None:
    """The first change in a cone of nodes, in the order of the program, that makes all outputs right.

    ``lasts`` are where the cone ends; they are changed last of all.
    """
    until_s = process_time() + LONGEST_S
    nodes = sorted(cone[-MOST_NODES:], key=lambda node: node.id in lasts)
    around = _around(trials, nodes)
    for node in nodes:
        for text, changed in _edits(node, around):
            if process_time() > until_s:
                return None
            if not _is_well_formed(changed, around):
                continue
            outcome = trials.edited(changed)
            if outcome.is_good and outcome.mended == trials.wrong:
                return Repair(_reader(node, nodes), text)
    return None


def _reader(node: Node, cone: Sequence[Node]) -> Node:
    """Of a number what is computed with it: that is what people look at."""
    readers = (each for each in cone if node.id in each.operands)
    return next(readers, node) if node.op in LEAVES else node


def _is_well_formed(node: Node, around: _Around) -> bool:
    types = tuple(around.nodes[operand].type for operand in node.operands)
    try:
        return type_of(node.op, types, node.attrs, mesh=around.mesh, declared=node.type) == node.type
    except InvalidGraph:
        return False


def _around(trials: Trials, cone: Sequence[Node]) -> _Around:
    candidate = trials.values.candidate
    graph = candidate.graph
    read = {operand for node in graph.nodes for operand in node.operands}
    read |= {output.value for output in graph.outputs}
    return _Around(
        cone=cone,
        nodes=candidate.nodes,
        places={node.id: place for place, node in enumerate(graph.nodes)},
        unread=frozenset(node.id for node in graph.nodes if node.id not in read),
        axes=trials.values.ranks.axes,
        mesh=graph.mesh,
    )


def _edits(node: Node, around: _Around) -> Iterator[tuple[str, Node]]:
    """Small changes to a node that keep its type."""
    for op in _RELATIVES.get(node.op, ()):
        yield f"{op} in the place of {node.op}", replace(node, op=op)
    for name in ("data", "starts", "k"):
        if name in node.attrs:
            yield from _numbers(node, name, around)
    types = [around.nodes[operand].type for operand in node.operands]
    if len(types) > 1 and types[0] == types[1]:
        swapped = (node.operands[1], node.operands[0], *node.operands[2:])
        yield "its first two operands in the other order", replace(node, operands=swapped)
    yield from _other_operands(node, around)


def _numbers(node: Node, name: str, around: _Around) -> Iterator[tuple[str, Node]]:
    value = node.attrs[name]
    if isinstance(value, tuple):
        if len(value) > MOST_ELEMENTS:
            return
        for place, number in enumerate(value):
            for other in chain(_beside(number), _of_others(node, number, around)):
                changed = (*value[:place], other, *value[place + 1 :])
                made = _with(node, name, changed, (place, other, number))
                if made is not None:
                    yield f"{attr_text(other)} in the place of {attr_text(number)}", made
    else:
        for other in _beside(value):
            made = replace(node, attrs=MappingProxyType({**node.attrs, name: other}))
            yield f"{name} {attr_text(other)} in the place of {attr_text(value)}", made


def _beside(number: Attr) -> Iterator[Attr]:
    if isinstance(number, RankInt):
        yield from (replace(number, base=number.base + step) for step in (1, -1))
        for place, (stride, size, factor) in enumerate(number.terms):
            terms = (*number.terms[:place], (stride, size, -factor), *number.terms[place + 1 :])
            yield RankInt(base=number.base + factor * (size - 1), terms=terms)
    elif isinstance(number, int) and not isinstance(number, bool):
        yield from (number + 1, number - 1)
    elif isinstance(number, float):
        yield from (2 * number, number / 2, -number)


def _of_others(node: Node, number: Attr, around: _Around) -> Iterator[Attr]:
    """The numbers of other constants beside it, as they are, by the rank, and from the own base."""
    if node.op != "constant":
        return
    for other in around.cone:
        data = other.attrs.get("data")
        alike = other.op == "constant" and other.type == node.type and other.id != node.id
        each = data[0] if alike and isinstance(data, tuple) and data else number
        if each == number:
            continue
        yield each
        if isinstance(number, int) and isinstance(each, RankInt):
            yield replace(each, base=int(number))
        if isinstance(number, int) and isinstance(each, int) and each:
            for axis in around.axes:
                yield RankInt(base=int(number), terms=((axis.stride, axis.size, int(each)),))


def _with(node: Node, name: str, value: tuple[Attr, ...], moved: tuple[int, Attr, Attr]) -> Node | None:
    """With another value of an attribute; a window is moved as a whole, and stays within what it is of."""
    attrs: dict[str, Attr] = {**node.attrs, name: value}
    if name == "starts" and "limits" in node.attrs:
        place, new, old = moved
        limits = node.attrs["limits"]
        if not isinstance(limits, tuple) or not isinstance(new, int) or not isinstance(old, int):
            return None
        limit = limits[place]
        if new < 0 or not isinstance(limit, int):
            return None
        attrs["limits"] = (*limits[:place], limit + new - old, *limits[place + 1 :])
    return replace(node, attrs=MappingProxyType(attrs))


def _other_operands(node: Node, around: _Around) -> Iterator[tuple[str, Node]]:
    """Values of the same type that are computed before it, nearby, or that nothing reads."""
    own = around.places[node.id]
    near = {each.id for each in around.cone} | around.unread
    options = [
        each
        for each, place in around.places.items()
        if place < own and (each in near or place >= own - NEARBY)
    ]
    for place, operand in enumerate(node.operands):
        for other in options:
            if other not in node.operands and around.nodes[other].type == around.nodes[operand].type:
                operands = (*node.operands[:place], other, *node.operands[place + 1 :])
                yield f"{other} in the place of {operand}", replace(node, operands=operands)
