"""Makes graph nodes, typed as they are made, for the call that is being translated.

Types follow from ``scalify.ir.ops``; a call whose record says otherwise is damaged. Small moves that
change nothing (a reshape to the same shape) make no node.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from scalify.errors import InvalidGraph
from scalify.ir.graph import Attr, DType, Node, NodeId, Site, TensorType
from scalify.ir.mesh import SINGLE, Mesh
from scalify.ir.ops import type_of
from scalify.load.torch_export.scalars import kind

NODES_LIMIT = 2_000_000
CONCAT_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class Wire:
    """A node's result while its graph is made."""

    id: NodeId
    type: TensorType

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of its dimensions."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """Its element type."""
        return self.type.dtype


class Emitter:
    """The nodes so far. ``at`` says for which call the next ones are."""

    def __init__(self, mesh: Mesh = SINGLE) -> None:
        self.mesh = mesh
        self.nodes: dict[NodeId, Node] = {}
        self._name = "value"
        self._stack: tuple[Site, ...] = ()
        self._scope = ""
        self._made = 0

    def at(self, name: str, stack: tuple[Site, ...] = (), scope: str = "") -> None:
        """Nodes made from now on belong to this call."""
        self._name, self._stack, self._scope, self._made = name, stack, scope, 0

    def emit(
        self,
        op: str,
        *operands: Wire,
        declared: TensorType | None = None,
        attrs: Mapping[str, Attr] | None = None,
    ) -> Wire:
        """One node. ``declared`` is needed where the type does not follow from the operands."""
        if len(self.nodes) >= NODES_LIMIT:
            raise InvalidGraph("the graph unfolds beyond measure", hint="export a smaller part of the model")
        frozen = MappingProxyType(dict(attrs or {}))
        type_ = type_of(op, tuple(w.type for w in operands), frozen, mesh=self.mesh, declared=declared)
        node = Node(
            id=self._fresh(),
            op=op,
            operands=tuple(w.id for w in operands),
            attrs=frozen,
            type=type_,
            site=self._stack[-1] if self._stack else None,
            stack=self._stack,
            scope=self._scope,
        )
        self.nodes[node.id] = node
        return Wire(node.id, type_)

    def _fresh(self) -> NodeId:
        while True:
            name = NodeId(self._name if not self._made else f"{self._name}.{self._made}")
            self._made += 1
            if name not in self.nodes:
                return name

    def constant(self, dtype: DType, number: int | float | bool, shape: tuple[int, ...] = ()) -> Wire:
        """The same number everywhere."""
        convert = {"bool": bool, "int": int}.get(kind(dtype), float)
        return self.emit("constant", declared=TensorType(dtype, shape), attrs={"data": (convert(number),)})

    def cast(self, wire: Wire, dtype: DType) -> Wire:
        """The same values in another type."""
        if wire.dtype == dtype:
            return wire
        return self.emit("cast", wire, declared=TensorType(dtype, wire.shape))

    def reshape(self, wire: Wire, shape: Sequence[int]) -> Wire:
        """The same elements, row-major, in another shape."""
        if wire.shape == tuple(shape):
            return wire
        return self.emit("reshape", wire, declared=TensorType(wire.dtype, tuple(shape)))

    def transpose(self, wire: Wire, perm: Sequence[int]) -> Wire:
        """Dimension ``perm[i]`` comes to place i."""
        if tuple(perm) == tuple(range(len(wire.shape))):
            return wire
        return self.emit("transpose", wire, attrs={"perm": tuple(perm)})

    def broadcast(self, wire: Wire, shape: Sequence[int]) -> Wire:
        """Repeated along new leading dimensions and those of size 1."""
        target = tuple(shape)
        if wire.shape == target:
            return wire
        dims = tuple(range(len(target) - len(wire.shape), len(target)))
        return self.emit("broadcast", wire, declared=TensorType(wire.dtype, target), attrs={"dims": dims})

    def slice(self, wire: Wire, axis: int, start: int, limit: int, step: int = 1) -> Wire:
        """Part of one dimension."""
        shape = wire.shape
        if (start, limit, step) == (0, shape[axis], 1):
            return wire
        starts = tuple(start if i == axis else 0 for i in range(len(shape)))
        limits = tuple(limit if i == axis else size for i, size in enumerate(shape))
        steps = tuple(step if i == axis else 1 for i in range(len(shape)))
        return self.emit("slice", wire, attrs={"starts": starts, "limits": limits, "steps": steps})

    def concat(self, wires: Sequence[Wire], axis: int) -> Wire:
        """Side by side along one dimension."""
        if len(wires) == 1:
            return wires[0]
        return self.emit("concat", *wires, attrs={"axis": axis})

    def einsum(self, spec: str, *wires: Wire, dtype: DType | None = None) -> Wire:
        """A contraction."""
        made = type_of("einsum", tuple(w.type for w in wires), {"spec": spec}, mesh=self.mesh)
        return self.emit(
            "einsum", *wires, declared=TensorType(dtype or made.dtype, made.shape), attrs={"spec": spec}
        )

    def elementwise(
        self, op: str, *wires: Wire, dtype: DType, attrs: Mapping[str, Attr] | None = None
    ) -> Wire:
        """One of the elementwise ops, whose result is of the stated type."""
        made = type_of(op, tuple(w.type for w in wires), attrs or {}, mesh=self.mesh)
        return self.emit(op, *wires, declared=TensorType(dtype, made.shape), attrs=attrs)

    def reduce(
        self, combine: str, wire: Wire, axes: Sequence[int], keepdims: bool, dtype: DType | None = None
    ) -> Wire:
        """A reduction over some dimensions."""
        attrs: dict[str, Attr] = {"kind": combine, "axes": tuple(sorted(axes)), "keepdims": keepdims}
        made = type_of("reduce", (wire.type,), attrs, mesh=self.mesh)
        return self.emit("reduce", wire, declared=TensorType(dtype or made.dtype, made.shape), attrs=attrs)

    def flat(self, wire: Wire) -> Wire:
        """All elements in a row."""
        return self.reshape(wire, (prod(wire.shape),))
