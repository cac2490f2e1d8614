"""A graph with one mistake made in it: nodes put in, changed, and read by others than before.

Whatever is put in stands at the line of the node that it is put beside, as if it had been written there.

Which nodes a verdict may blame: a node that was put in or changed, or that reads another operand than before,
and its first uses, which are the nodes that read it. Of a node that was removed: what is read in its place,
and the nodes that read that now. What nobody needs any more is removed as well. ``exact`` has those nodes;
``places`` has those as well that are as near if views are looked through: a reshape, a transposition,
a broadcast, a cast, a slice that keeps everything. A collective, a concatenation, a part of something or
a constant factor is a use like any other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from scalify.errors import InvalidGraph
from scalify.ir.check import check
from scalify.ir.graph import Attr, DType, Graph, Node, NodeId, TensorType
from scalify.ir.ops import type_of

VIEWS = frozenset({"reshape", "transpose", "broadcast", "cast"})
"""What only gives numbers another shape, order or format. A slice that keeps everything does, too."""

MADE = "wrong."
"""What the names of nodes that were put in begin with."""


class Wrong(NamedTuple):
    """A graph with a mistake, and the nodes that a verdict may blame: exactly, and through views."""

    graph: Graph
    exact: frozenset[NodeId]
    places: frozenset[NodeId]


class Edit:
    """A graph while it is edited."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes = {node.id: node for node in graph.nodes}
        self._order = [node.id for node in graph.nodes]
        self._outputs = list(graph.outputs)
        self._wrong: set[NodeId] = set()
        self._removed: dict[NodeId, NodeId] = {}  # by what is read instead

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
                self._wrong |= set() if chosen is None else {node.id}
        if chosen is None:
            self._removed[new] = old
            self._outputs = [
                replace(output, value=new) if output.value == old else output for output in self._outputs
            ]

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
        needed, before = _needed(made), _needed(self.graph)
        touched = {*self._removed, *self._wrong}
        if made == self.graph or not touched & needed:
            return None
        kept = (
            node for node in made.nodes if node.op == "input" or node.id in needed or node.id not in before
        )
        made = replace(made, nodes=tuple(kept))
        exact, places = (self._places(made, through) for through in (frozenset[NodeId](), _views(made)))
        return Wrong(made, exact, places)

    def _places(self, made: Graph, views: frozenset[NodeId]) -> frozenset[NodeId]:
        """What a verdict may blame if such nodes are looked through."""
        found = self._wrong | first_uses(made, self._wrong, views)
        needed = _needed(made)
        for new, old in self._removed.items():
            found |= first_uses(self.graph, [old], views)
            if old not in needed:
                fed = {new, *(self.nodes[new].operands if new.startswith(MADE) else ())}
                found |= {each for value in fed for each in self._behind(value, views)}
        return frozenset(found)

    def _behind(self, value: NodeId, views: frozenset[NodeId]) -> set[NodeId]:
        """A value, and what it is a view of."""
        found = {value}
        while value in views:
            value = self.nodes[value].operands[0]
            found.add(value)
        return found


def readers(graph: Graph, value: NodeId) -> tuple[Node, ...]:
    """The nodes that read a value."""
    return tuple(node for node in graph.nodes if value in node.operands)


def first_uses(graph: Graph, values: Iterable[NodeId], views: frozenset[NodeId]) -> frozenset[NodeId]:
    """The nodes that read any of the values, and those that read what views make of them."""
    moved = set(values)
    found: set[NodeId] = set()
    for node in graph.nodes:
        if moved & set(node.operands):
            found.add(node.id)
            if node.id in views:
                moved.add(node.id)
    return frozenset(found)


def _views(graph: Graph) -> frozenset[NodeId]:
    types = {node.id: node.type for node in graph.nodes}
    return frozenset(
        node.id
        for node in graph.nodes
        if node.op in VIEWS or (node.op == "slice" and types[node.operands[0]].shape == node.type.shape)
    )


def _needed(graph: Graph) -> set[NodeId]:
    needed = {output.value for output in graph.outputs}
    for node in reversed(graph.nodes):
        if node.id in needed:
            needed.update(node.operands)
    return needed
