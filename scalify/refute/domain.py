"""Which values an input may take, as far as that can be read off what is done with it.

In: a graph. Out: for each of its inputs the range of whole numbers that address rows which exist, whether
they must differ from each other, whether real numbers should be positive, and the numbers that they are
compared with: at these, masks and conditions turn over. Values are followed through what only moves them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from scalify.ir.graph import Graph, Node, NodeId
from scalify.ir.look_ups import indices
from scalify.ir.mesh import RankInt
from scalify.ir.ops.dtypes import KIND_OF
from scalify.verdict import Domain

MOST_EDGES = 16
LARGEST_EDGE = 1 << 40

_SAME = frozenset({"reshape", "transpose", "broadcast", "slice", "concat", "reverse", "pad", "cast"})
_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "max", "min", "clamp"})
_SHIFTED = frozenset({"add", "sub"})
_OF_POSITIVE = frozenset({"log", "sqrt", "rsqrt", "log1p", "log2"})


def met(one: Domain, other: Domain) -> Domain:
    """What both say."""
    sizes = [size for size in (one.size, other.size) if size is not None]
    return Domain(
        size=min(sizes, default=None),
        distinct=one.distinct or other.distinct,
        positive=one.positive or other.positive,
        edges=tuple(dict.fromkeys((*one.edges, *other.edges)))[:MOST_EDGES],
    )


@dataclass(slots=True)
class _State:
    nodes: Mapping[NodeId, Node]
    sources: dict[NodeId, frozenset[NodeId]] = field(default_factory=dict[NodeId, frozenset[NodeId]])
    shifted: dict[NodeId, frozenset[NodeId]] = field(default_factory=dict[NodeId, frozenset[NodeId]])
    found: dict[NodeId, Domain] = field(default_factory=dict[NodeId, Domain])

    def say(self, inputs: Iterable[NodeId], domain: Domain) -> None:
        for each in inputs:
            self.found[each] = met(self.found[each], domain)


def domains(graph: Graph) -> Mapping[NodeId, Domain]:
    """The domain of every input, by its node."""
    state = _State(graph.by_id())
    for node in graph.nodes:
        if node.op == "input":
            state.found[node.id] = Domain()
            state.sources[node.id] = state.shifted[node.id] = frozenset({node.id})
            continue
        _follow(state, node)
        for place, operand in enumerate(node.operands):
            domain = _said(state, node, place)
            if domain is not None:
                state.say(state.sources[operand], domain)
        if node.op in _COMPARISONS | {"sub"}:
            for operand in node.operands:
                state.say(state.shifted[operand], Domain(edges=_constants(state, node)))
    return {
        each: replace(domain, edges=()) if state.nodes[each].type.dtype == "bool" else domain
        for each, domain in state.found.items()
    }


def _follow(state: _State, node: Node) -> None:
    """From which inputs a value comes unchanged; and from which it comes but for what was added."""
    nothing: frozenset[NodeId] = frozenset()
    data = node.operands[:1] if node.op in ("slice", "pad", "take") else node.operands
    same = node.op in _SAME or node.op in ("all_gather", "broadcast_from", "all_to_all")
    if node.op == "cast" and KIND_OF[node.type.dtype] != KIND_OF[state.nodes[node.operands[0]].type.dtype]:
        same = False
    moved = frozenset[NodeId]().union(*(state.sources[each] for each in data))
    drifted = frozenset[NodeId]().union(*(state.shifted[each] for each in data))
    state.sources[node.id] = moved if same else nothing
    state.shifted[node.id] = drifted if same or node.op in _SHIFTED or node.op == "take" else nothing


def _said(state: _State, node: Node, place: int) -> Domain | None:
    """What an op says of one of its operands."""
    for at, dim in indices(node):
        if at == place:
            size = state.nodes[node.operands[0]].type.shape[dim]
            return Domain(size=size, distinct=node.attrs.get("mode") == "set")
    match node.op, place:
        case ("one_hot", 0):
            return Domain(size=cast(int, node.attrs["classes"]))
        case ("div" | "reciprocal" | "mod" | "rem" | "floordiv", _) if place == len(node.operands) - 1:
            return Domain(positive=True)
        case (op, 0) if op in _OF_POSITIVE:
            return Domain(positive=True)
        case ("batch_norm", 2):
            return Domain(positive=True)
        case _:
            return None


def _constants(state: _State, node: Node) -> tuple[float, ...]:
    """The numbers that a node's other operands hold, and those on either side."""
    found: list[float] = []
    for operand in node.operands:
        found.extend(_numbers(state, operand))
    return tuple(dict.fromkeys(each + step for each in found for step in (0, -1, 1)))[:MOST_EDGES]


def _numbers(state: _State, operand: NodeId) -> list[float]:
    node = state.nodes[operand]
    while node.op in ("broadcast", "reshape", "cast"):
        node = state.nodes[node.operands[0]]
    if node.op == "iota":
        return [0, max(node.type.shape) - 1]
    data = node.attrs.get("data") if node.op == "constant" else None
    if not isinstance(data, tuple) or len(data) > MOST_EDGES:
        return []
    plain = [each.base if isinstance(each, RankInt) else each for each in data]
    return [float(each) for each in plain if isinstance(each, int | float) and abs(each) < LARGEST_EDGE]
