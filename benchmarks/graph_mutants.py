"""Graphs with one attribute or operand changed, as people change them by mistake; all still type-check.

Only what outputs depend on is changed. ``label`` says how.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import cast

from scalify.errors import InvalidGraph
from scalify.ir.check import check
from scalify.ir.graph import Attr, Graph, Node, NodeId
from scalify.ir.mesh import Groups
from scalify.partition import computed

Edit = tuple[str, Mapping[str, Attr]]
Ints = tuple[int, ...]

KINDS = ("sum", "max", "min", "mean", "prod")
KINDS_OF_RANKS = ("sum", "max", "min", "avg", "prod")
OTHER_OPS = {
    "add": "sub",
    "sub": "add",
    "mul": "add",
    "div": "mul",
    "sin": "cos",
    "cos": "sin",
    "exp": "sigmoid",
    "sigmoid": "tanh",
    "le": "lt",
    "ge": "gt",
    "and": "or",
}
NOT_COMMUTATIVE = ("sub", "div", "concat", "lt", "le", "gt", "ge")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """``node`` is the one that was changed, as it was."""

    node: Node
    label: str
    graph: Graph


def mutants(graph: Graph) -> Iterator[Mutant]:
    """Every mutant, in the order of the program."""
    needed = {node.id for node in computed(graph)}
    needed |= {operand for node in graph.nodes if node.id in needed for operand in node.operands}
    for node in graph.nodes:
        if node.id not in needed or node.op == "input":
            continue
        for label, changed in _changed(graph, node):
            edited = replace(
                graph, nodes=tuple(changed if each.id == node.id else each for each in graph.nodes)
            )
            try:
                check(edited)
            except InvalidGraph:
                continue
            yield Mutant(node=node, label=f"{node.op}: {label}", graph=edited)


def _changed(graph: Graph, node: Node) -> Iterator[tuple[str, Node]]:
    for label, attrs in edits(node, graph.mesh.size):
        yield label, replace(node, attrs=MappingProxyType({**node.attrs, **attrs}))
    if node.op in NOT_COMMUTATIVE:
        yield "operands swapped", replace(node, operands=node.operands[::-1])
    if node.op in OTHER_OPS:
        yield f"is {OTHER_OPS[node.op]}", replace(node, op=OTHER_OPS[node.op])
    for place, operand in enumerate(node.operands):
        other = _other_value(graph, node, operand)
        if other is not None:
            operands = (*node.operands[:place], other, *node.operands[place + 1 :])
            yield f"operand {place} is {other}", replace(node, operands=operands)


def _other_value(graph: Graph, node: Node, operand: NodeId) -> NodeId | None:
    """The last value of the operand's type that is computed before the node and is not read by it."""
    types = {each.id: each.type for each in graph.nodes}
    before = itertools.takewhile(lambda each: each.id != node.id, graph.nodes)
    fits = [each.id for each in before if each.type == types[operand] and each.id not in node.operands]
    return fits[-1] if fits else None


def edits(node: Node, ranks: int) -> Iterator[Edit]:
    """Other attributes for one node."""
    if node.op == "slice":
        yield from _windows(node)
    elif node.op == "reduce":
        yield from ((kind, {"kind": kind}) for kind in KINDS if kind != node.attrs["kind"])
    elif node.op == "all_reduce":
        yield from ((kind, {"kind": kind}) for kind in KINDS_OF_RANKS if kind != node.attrs["kind"])
        yield from ((f"groups {groups}", {"groups": groups}) for groups in _other_groups(ranks))
    elif node.op in ("transpose", "broadcast"):
        yield from _orders(node)
    elif node.op == "constant":
        yield from _values(node)
    elif node.op == "rms_norm":
        yield "eps", {"eps": 4 * cast(float, node.attrs["eps"])}
    elif node.op == "einsum":
        yield from _letters(str(node.attrs["spec"]))


def _windows(node: Node) -> Iterator[Edit]:
    """Moved by one, and by its own size, both ways, along each dimension."""
    starts, limits = cast(Ints, node.attrs["starts"]), cast(Ints, node.attrs["limits"])
    for dim, (start, limit) in enumerate(zip(starts, limits, strict=True)):
        for by in dict.fromkeys((1, -1, limit - start, start - limit)):
            moved = {
                name: tuple(place + by if d == dim else place for d, place in enumerate(places))
                for name, places in (("starts", starts), ("limits", limits))
            }
            yield f"dimension {dim} moved by {by}", moved


def _other_groups(ranks: int) -> list[Groups]:
    alone = tuple((rank,) for rank in range(ranks))
    half = ranks // 2
    if half < 2:
        return [alone]
    neighbours = tuple(tuple(range(start, start + half)) for start in (0, half))
    apart = tuple(tuple(range(start, ranks, 2)) for start in (0, 1))
    return [alone, neighbours, apart]


def _orders(node: Node) -> Iterator[Edit]:
    name = "perm" if node.op == "transpose" else "dims"
    known = cast(Ints, node.attrs[name])
    ways = itertools.permutations if node.op == "transpose" else itertools.combinations
    for order in ways(range(len(node.type.shape)), len(known)):
        if order != known:
            yield f"{name} {order}", {name: order}


def _values(node: Node) -> Iterator[Edit]:
    data = cast(tuple[float, ...], node.attrs.get("data", ()))
    if len(data) == 1:
        for value in dict.fromkeys((2.0, 2 * data[0], data[0] + 1)):
            if value != data[0]:
                yield f"value {value}", {"data": (value,)}
    elif data:
        yield "one value", {"data": (*data[:-1], data[-1] + 1)}
        yield "reversed", {"data": data[::-1]}


def _letters(spec: str) -> Iterator[Edit]:
    """Two letters of one operand or of the result swapped."""
    left, _, result = spec.partition("->")
    parts = [*left.split(","), result]
    for place, letters in enumerate(parts):
        for one, other in itertools.combinations(letters, 2):
            swapped = letters.translate(str.maketrans(one + other, other + one))
            changed = [swapped if p == place else part for p, part in enumerate(parts)]
            wrong = f"{','.join(changed[:-1])}->{changed[-1]}"
            yield wrong, {"spec": wrong}
