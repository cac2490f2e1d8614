"""A graph with one mistake made in it: nodes put in, changed, and read by others than before.

Whatever is put in stands at the line of the node that it is put beside, as if it had been written there.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from scalify.errors import InvalidGraph
from scalify.ir.check import check
from scalify.ir.graph import Attr, DType, Graph, Node, NodeId, TensorType
from scalify.ir.ops import type_of
from scalify.localize.align import MOVEMENTS

MADE = "wrong."
"""What the names of nodes that were put in begin with."""


class Wrong(NamedTuple):
    """A graph with a mistake, and the nodes that a verdict may blame: what was changed, or its first use."""

    graph: Graph
    places: frozenset[NodeId]


class Edit:
    """A graph while it is edited."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes = {node.id: node for node in graph.nodes}
        self._order = [node.id for node in graph.nodes]
        self._outputs = list(graph.outputs)
        self._touched: set[NodeId] = set()
        self._wrong: set[NodeId] = set()  # of what was touched, the nodes whose own results are wrong

    def before(
        self,
        place: NodeId,
        op: str,
        *operands: NodeId,
        shape: tuple[int, ...] | None = None,
        dtype: DType | None = None,
        **attrs: Attr,
    ) -> NodeId:
        """A new node, just before another one."""
        return self._put(self._order.index(place), self.nodes[place], op, operands, shape, dtype, attrs)

    def after(
        self,
        place: NodeId,
        op: str,
        *operands: NodeId,
        shape: tuple[int, ...] | None = None,
        dtype: DType | None = None,
        **attrs: Attr,
    ) -> NodeId:
        """A new node, just after another one."""
        return self._put(self._order.index(place) + 1, self.nodes[place], op, operands, shape, dtype, attrs)

    def _put(
        self,
        position: int,
        beside: Node,
        op: str,
        operands: tuple[NodeId, ...],
        shape: tuple[int, ...] | None,
        dtype: DType | None,
        attrs: Mapping[str, Attr],
    ) -> NodeId:
        types = tuple(self.nodes[operand].type for operand in operands)
        first = types[0].dtype if types else "f32"
        declared = None if shape is None else TensorType(dtype or first, shape)
        made = Node(
            id=NodeId(f"{MADE}{len(self.nodes)}"),
            op=op,
            operands=operands,
            attrs=MappingProxyType(dict(attrs)),
            type=type_of(op, types, attrs, mesh=self.graph.mesh, declared=declared),
            site=beside.site,
            stack=beside.stack,
            scope=beside.scope,
        )
        self.nodes[made.id] = made
        self._order.insert(position, made.id)
        self._wrong.add(made.id)
        return made.id

    def number(self, place: NodeId, value: float) -> NodeId:
        """A constant for a node to read, of the dtype of its first operand."""
        dtype = self.nodes[self.nodes[place].operands[0]].type.dtype
        return self.before(place, "constant", shape=(), dtype=dtype, data=(value,))

    def change(
        self,
        place: NodeId,
        *,
        op: str | None = None,
        operands: tuple[NodeId, ...] | None = None,
        attrs: Mapping[str, Attr] | None = None,
    ) -> None:
        """Another operation, other operands, some other attributes. Its type stays."""
        node = self.nodes[place]
        self.nodes[place] = replace(
            node,
            op=op or node.op,
            operands=node.operands if operands is None else operands,
            attrs=MappingProxyType({**(node.attrs if op is None else {}), **(attrs or {})}),
        )
        self._wrong.add(place)

    def read_instead(self, old: NodeId, new: NodeId, readers: Iterable[NodeId] | None = None) -> None:
        """What read the one value, or some of it, reads the other."""
        chosen = None if readers is None else set(readers)
        for node in [*self.nodes.values()]:
            is_reader = old in node.operands and (chosen is None or node.id in chosen)
            if is_reader and not node.id.startswith(MADE):
                operands = tuple(new if operand == old else operand for operand in node.operands)
                self.nodes[node.id] = replace(node, operands=operands)
                (self._wrong if self._goes_through(node) else self._touched).add(node.id)
        self._touched.add(new)
        if chosen is None:
            self._touched |= {old, *self._sources(new)}
            self._outputs = [
                replace(output, value=new) if output.value == old else output for output in self._outputs
            ]

    def _goes_through(self, node: Node) -> bool:
        return goes_through(node, {each.id for each in self.nodes.values() if each.op == "constant"})

    def _sources(self, value: NodeId) -> set[NodeId]:
        """A value, and what it is that is only moved on the way to it."""
        found = {value}
        while self.nodes[value].op in MOVEMENTS:
            value = self.nodes[value].operands[0]
            found.add(value)
        return found

    def done(self) -> Wrong | None:
        """The graph with the mistake; None if it is ill-formed, or nobody reads what was changed."""
        made = replace(
            self.graph,
            nodes=tuple(self.nodes[value] for value in self._order),
            outputs=tuple(self._outputs),
        )
        try:
            check(made)
        except InvalidGraph:
            return None
        needed = _needed(made)
        touched = self._touched | self._wrong
        if made == self.graph or not touched & needed:
            return None
        return Wrong(made, frozenset(touched) | first_uses(made, self._wrong))


def readers(graph: Graph, value: NodeId) -> tuple[Node, ...]:
    """The nodes that read a value."""
    return tuple(node for node in graph.nodes if value in node.operands)


def first_uses(graph: Graph, values: Iterable[NodeId]) -> frozenset[NodeId]:
    """The nodes that first compute with any of the values. Movements of data and factors are on the way:
    a sum over ranks that is not taken yet goes through them unharmed."""
    moved = set(values)
    constants = {node.id for node in graph.nodes if node.op == "constant"}
    found: set[NodeId] = set()
    for node in graph.nodes:
        if moved & set(node.operands):
            found.add(node.id)
            if goes_through(node, constants):
                moved.add(node.id)
    return frozenset(found)


def goes_through(node: Node, constants: Set[NodeId]) -> bool:
    """Whether a node only moves data, on a rank or between ranks, or multiplies them with a number."""
    factor = node.op in ("mul", "div") and constants & set(node.operands)
    return node.op in MOVEMENTS | {"all_gather", "all_to_all", "permute"} or bool(factor)


def _needed(graph: Graph) -> set[NodeId]:
    needed = {output.value for output in graph.outputs}
    for node in reversed(graph.nodes):
        if node.id in needed:
            needed.update(node.operands)
    return needed
