"""Through which number formats a value went since it was computed.

In: a graph. Out: for each value, what it was computed by, and how it was rounded since. Rounding commutes
with moving data and with choosing among numbers (a maximum, a condition), with a change of sign and with
a power of two: a cast before one of these is the same as one after it, so they are looked through.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scalify.ir.graph import DType, Graph, Node, NodeId
from scalify.localize.align import MOVEMENTS
from scalify.precision.formats import coarser, is_rounding

COMBINING = frozenset({"all_reduce", "reduce_scatter"})
"""Collectives in which ranks' values are added up, or chosen among."""

MOST_SOURCES = 16
"""A value that is chosen among more is followed to the first of them."""

_CHOOSING_KINDS = frozenset({"max", "min"})
_DATA = {
    "where": slice(1, None),
    "dynamic_slice": slice(0, 1),
    "dynamic_update_slice": slice(0, 2),
    "take": slice(0, 1),
    "take_along": slice(0, 1),
    "topk_values": slice(0, 1),
    "pad": slice(0, 1),
}
_CHOOSING = frozenset(
    {"max", "min", "neg", "abs", "relu", "clamp", "where", "sort", "topk_values", "take", "take_along"}
    | {"tril", "triu", "dynamic_slice", "update_slice", "dynamic_update_slice"}
    | {"all_gather", "all_to_all", "permute", "broadcast_from"}
)


@dataclass(frozen=True, slots=True)
class Rounding:
    """A node whose result is held in ``dtype``."""

    node: NodeId
    dtype: DType


@dataclass(frozen=True, slots=True)
class Way:
    """One way that a value may have come: from ``source``, by roundings, each coarser than all before.

    No roundings: the value is exact.
    """

    source: NodeId
    roundings: tuple[Rounding, ...]

    @property
    def coarsest(self) -> DType | None:
        """The format that tells how good the value still is."""
        return self.roundings[-1].dtype if self.roundings else None

    def then(self, node: Node) -> "Way":
        """The way on through a node that rounds to its dtype."""
        dtype = node.type.dtype
        if not is_rounding(dtype) or (self.roundings and coarser(self.coarsest, dtype) == self.coarsest):
            return self
        return Way(self.source, (*self.roundings, Rounding(node.id, dtype)))


@dataclass(frozen=True, slots=True)
class Ways:
    """All ways of a value: of those from one source, the coarsest."""

    by_source: Mapping[NodeId, Way]

    def coarsest(self) -> Way | None:
        """The worst of them; None for a value that is made of constants."""
        found: Way | None = None
        for way in self.by_source.values():
            if found is None or (
                way.roundings and coarser(way.coarsest, found.coarsest) == way.coarsest != found.coarsest
            ):
                found = way
        return found


def ways(graph: Graph) -> dict[NodeId, Ways]:
    """For each value, how it came to be in the format in which it is read."""
    nodes = graph.by_id()
    found: dict[NodeId, Ways] = {}
    for node in graph.nodes:
        found[node.id] = _ways(node, nodes, found)
    return found


def _ways(node: Node, nodes: Mapping[NodeId, Node], found: Mapping[NodeId, Ways]) -> Ways:
    if node.op == "constant":
        return Ways({})
    if not keeps(node, nodes):
        start = Way(node.id, ())
        return Ways({node.id: start.then(node)})
    merged: dict[NodeId, Way] = {}
    for operand in _data(node, nodes):
        for way in found[operand].by_source.values():
            on = way.then(node)
            known = merged.get(on.source)
            is_new = known is None and len(merged) < MOST_SOURCES
            if is_new or (known and coarser(on.coarsest, known.coarsest) != known.coarsest):
                merged[on.source] = on
    return Ways(merged)


def keeps(node: Node, nodes: Mapping[NodeId, Node]) -> bool:
    """Whether a node gives back numbers that it was given: they may be rounded before it or after it."""
    if node.op in MOVEMENTS | _CHOOSING:
        return True
    if node.op in COMBINING | {"reduce"}:
        return node.attrs["kind"] in _CHOOSING_KINDS
    if node.op in ("scatter", "index_put"):
        return node.attrs["mode"] == "set"
    return node.op in ("mul", "div") and len(_data(node, nodes)) == 1


def _data(node: Node, nodes: Mapping[NodeId, Node]) -> tuple[NodeId, ...]:
    """The operands whose numbers the result holds."""
    if node.op == "mul":
        return tuple(operand for operand in node.operands if not _is_power_of_two(operand, nodes))
    if node.op == "div":
        return node.operands[:1] if _is_power_of_two(node.operands[1], nodes) else node.operands
    if node.op == "scatter":
        return (node.operands[0], node.operands[2])
    if node.op == "index_put":
        return node.operands[:2]
    return node.operands[_DATA.get(node.op, slice(None))]


def _is_power_of_two(value: NodeId, nodes: Mapping[NodeId, Node]) -> bool:
    node = nodes[value]
    while node.op in ("broadcast", "reshape", "cast"):
        node = nodes[node.operands[0]]
    data = node.attrs.get("data")
    if node.op != "constant" or not isinstance(data, tuple) or len(data) != 1:
        return False
    (number,) = data
    return isinstance(number, int | float) and math.isfinite(number) and abs(math.frexp(number)[0]) == 0.5
