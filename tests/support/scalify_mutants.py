"""Planted bugs: every graph that differs from a given one in one node, and still is well-formed.

Most mutants compute something else; which of them do is for NumPy to say. They are made of attributes that
change within their kind, operands that trade places or are taken from elsewhere, operations that are
mistaken for a relative, and nodes that are left out or done twice.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from types import MappingProxyType
from typing import NamedTuple

from scalify.errors import InvalidGraph
from scalify.ir.check import check
from scalify.ir.graph import Attr, Graph, Node, NodeId, TensorType
from scalify.ir.mesh import Groups, RankInt

RELATIVES: Mapping[str, tuple[str, ...]] = {
    "add": ("sub", "mul", "max"),
    "sub": ("add",),
    "mul": ("div", "add"),
    "div": ("mul",),
    "max": ("min", "add"),
    "lt": ("le", "gt"),
    "le": ("lt", "ge"),
    "gt": ("ge", "lt"),
    "ge": ("gt", "le"),
    "eq": ("ne",),
    "ne": ("eq",),
    "and": ("or",),
    "sin": ("cos",),
    "cos": ("sin",),
    "exp": ("exp2",),
    "sqrt": ("rsqrt",),
    "rsqrt": ("sqrt",),
    "silu": ("sigmoid", "relu"),
    "square": ("abs",),
    "floor": ("round",),
    "round": ("floor",),
    "argmax": ("argmin",),
    "cumsum": ("cumprod",),
}
CHOICES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("all_reduce", "kind"): ("sum", "avg", "max", "min"),
    ("reduce_scatter", "kind"): ("sum", "avg", "max"),
    ("reduce", "kind"): ("sum", "mean", "max", "min"),
    ("gelu", "approximate"): ("none", "tanh"),
    ("index_put", "mode"): ("set", "add"),
    ("scatter", "mode"): ("set", "add"),
}


class Mutant(NamedTuple):
    """A graph with one mistake, the mistake in words, and the nodes that a verdict may blame for it."""

    what: str
    places: frozenset[NodeId]
    graph: Graph


def mutants(graph: Graph) -> Iterator[Mutant]:
    """All mutants of a graph, in the order of its nodes."""
    for place, node in enumerate(graph.nodes):
        for what, changed in _changes(node, graph.nodes[:place], graph.mesh.size):
            made = _with(graph, place, changed)
            if made is not None:
                places = frozenset(each.id for each in changed)
                yield Mutant(f"{node.op} {node.id}: {what}", places, made)
        for what, made in _left_out(graph, node):
            readers = [reader.id for reader in graph.nodes if node.id in reader.operands]
            yield Mutant(f"{node.op} {node.id}: {what}", frozenset((*node.operands, *readers)), made)


def _with(graph: Graph, place: int, changed: Sequence[Node]) -> Graph | None:
    """The graph with a node replaced, the last of ``changed`` under its id; None if that is ill-formed."""
    made = replace(graph, nodes=(*graph.nodes[:place], *changed, *graph.nodes[place + 1 :]))
    try:
        check(made)
    except InvalidGraph:
        return None
    return made


def _changes(node: Node, before: Sequence[Node], ranks: int) -> Iterator[tuple[str, Sequence[Node]]]:
    for op in RELATIVES.get(node.op, ()):
        yield f"is {op}", [replace(node, op=op)]
    for name, value in node.attrs.items():
        for other in _other_values(node, name, value, ranks):
            attrs = MappingProxyType({**node.attrs, name: other})
            yield f"{name} is {other}, not {value}", [replace(node, attrs=attrs)]
    for one, other in combinations(range(len(node.operands)), 2):
        operands = list(node.operands)
        operands[one], operands[other] = operands[other], operands[one]
        if operands[one] != operands[other]:
            yield f"operands {one} and {other} trade places", [replace(node, operands=tuple(operands))]
    for position, operand in enumerate(node.operands):
        for other in _alike(operand, before):
            operands = [*node.operands]
            operands[position] = other
            yield f"operand {position} is {other}", [replace(node, operands=tuple(operands))]
    yield from _moved_operands(node, before)
    if node.op in ("all_reduce", "mul", "add"):
        first = replace(node, id=NodeId(f"{node.id}.first"))
        yield "is done twice", [first, replace(node, operands=(first.id, *node.operands[1:]))]


def _moved_operands(node: Node, before: Sequence[Node]) -> Iterator[tuple[str, Sequence[Node]]]:
    """Operands that are transposed or reversed first, in ways that keep their shape."""
    types = {earlier.id: earlier.type for earlier in before}
    for position, operand in enumerate(node.operands):
        shape = types[operand].shape
        for one, other in combinations(range(len(shape)), 2):
            if shape[one] == shape[other] > 1:
                perm = list(range(len(shape)))
                perm[one], perm[other] = perm[other], perm[one]
                yield (
                    f"dimensions {one} and {other} of operand {position} trade places",
                    _moving(node, position, types, "transpose", perm=tuple(perm)),
                )
        for dim, size in enumerate(shape):
            if size > 1:
                yield (
                    f"operand {position} is reversed along {dim}",
                    _moving(node, position, types, "reverse", axes=(dim,)),
                )


def _moving(
    node: Node, position: int, types: Mapping[NodeId, TensorType], op: str, **attrs: Attr
) -> Sequence[Node]:
    moved = replace(
        node,
        id=NodeId(f"{node.id}.moved"),
        op=op,
        operands=(node.operands[position],),
        attrs=MappingProxyType(attrs),
        type=types[node.operands[position]],
    )
    operands = (*node.operands[:position], moved.id, *node.operands[position + 1 :])
    return [moved, replace(node, operands=operands)]


def _alike(operand: NodeId, before: Sequence[Node]) -> Iterable[NodeId]:
    """The last two earlier nodes of the same type."""
    (wanted,) = (node.type for node in before if node.id == operand)
    return [node.id for node in before if node.type == wanted and node.id != operand][-2:]


def _other_values(node: Node, name: str, value: Attr, ranks: int) -> Iterator[Attr]:
    if name == "groups":
        yield from (groups for groups in _groupings(ranks) if groups != value)
    elif (node.op, name) in CHOICES:
        yield from (choice for choice in CHOICES[node.op, name] if choice != value)
    elif name == "spec" and isinstance(value, str):
        yield from _respelled(value)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1)
    elif isinstance(value, float):
        yield from (value * 2, -value)
    elif isinstance(value, tuple) and name not in ("steps",):
        yield from _changed_entries(value)


def _changed_entries(values: tuple[Attr, ...]) -> Iterator[Attr]:
    for place, value in enumerate(values):
        for other in _numbers(value):
            yield (*values[:place], other, *values[place + 1 :])
    for one, other in combinations(range(len(values)), 2):
        swapped = list(values)
        swapped[one], swapped[other] = swapped[other], swapped[one]
        if tuple(swapped) != values:
            yield tuple(swapped)


def _numbers(value: Attr) -> Iterator[Attr]:
    if isinstance(value, RankInt):
        yield value.base
        yield from (replace(value, base=value.base + move) for move in (1, -1))
        for place, (stride, size, factor) in enumerate(value.terms):
            others = (*value.terms[:place], (stride, size, -factor), *value.terms[place + 1 :])
            yield RankInt(base=value.base + factor * (size - 1), terms=others)
    elif type(value) is int:
        yield from (value + 1, value - 1, 2 * value)
    elif isinstance(value, float):
        yield from (2 * value, value / 3, -value, value + 1)


def _respelled(spec: str) -> Iterator[str]:
    """Two letters of one operand trade places; so do, in another mutant, two letters of the result."""
    left, _, result = spec.partition("->")
    parts = [*left.split(","), result]
    for number, part in enumerate(parts):
        for one, other in combinations(range(len(part)), 2):
            letters = list(part)
            letters[one], letters[other] = letters[other], letters[one]
            changed = [*parts[:number], "".join(letters), *parts[number + 1 :]]
            yield f"{','.join(changed[:-1])}->{changed[-1]}"


def _groupings(ranks: int) -> Iterator[Groups]:
    """Partitions into groups of equal size with an even step, and the first of them back to front."""
    for size in range(1, ranks + 1):
        for step in (step for step in range(1, ranks + 1) if ranks % (size * step) == 0):
            firsts = [rank for rank in range(ranks) if rank // step % size == 0]
            groups = tuple(tuple(first + step * place for place in range(size)) for first in firsts)
            yield groups
            if size > 1:
                yield tuple(tuple(reversed(group)) for group in groups)


def _left_out(graph: Graph, node: Node) -> Iterator[tuple[str, Graph]]:
    """What reads the node reads one of its operands instead, where types agree."""
    types = {other.id: other.type for other in graph.nodes}
    for operand in dict.fromkeys(node.operands):
        if types[operand].shape != node.type.shape:
            continue
        nodes = [
            replace(other, operands=tuple(operand if x == node.id else x for x in other.operands))
            for other in graph.nodes
        ]
        outputs = [
            replace(output, value=operand if output.value == node.id else output.value)
            for output in graph.outputs
        ]
        made = replace(graph, nodes=tuple(nodes), outputs=tuple(outputs))
        try:
            check(made)
        except InvalidGraph:
            continue
        yield f"is left out, {operand} stands for it", made
