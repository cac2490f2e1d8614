"""The graph in the making, and one instruction on its way into it.

Translations of single opcodes see a ``Step``: the instruction, its operands as nodes, and ``emit``. The node
that is an instruction's result carries its name; nodes before it add a word for what they do
(``dot.3:order``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from scalify.errors import InvalidGraph
from scalify.ir.graph import Attr, DType, Node, NodeId, Site, TensorType
from scalify.load.hlo.by_rank import ByRank
from scalify.load.hlo.program import Instruction, Module, Shape
from scalify.load.hlo.ranks import Ranks
from scalify.load.hlo.shapes import is_array, tensor_type

# A node, the parts of a tuple, or None for a token.
Value = NodeId | tuple["Value", ...] | None


class Emission:
    """Nodes so far, with what later translations ask about them."""

    def __init__(self, module: Module, ranks: Ranks) -> None:
        self.module = module
        self.ranks = ranks
        self.nodes: dict[NodeId, Node] = {}
        self.effects: list[NodeId] = []
        self.digests: dict[int, tuple[str, bool]] = {}
        self.by_rank = ByRank(ranks.mesh(), self.nodes)
        self._used: dict[str, int] = {}

    def free_id(self, wanted: str) -> str:
        """``wanted``, or ``wanted#2`` and so on where it is taken: damaged files repeat names."""
        count = self._used.get(wanted, 0) + 1
        self._used[wanted] = count
        return wanted if count == 1 else self.free_id(f"{wanted}#{count}")

    def add(self, node: Node) -> NodeId:
        """Take a node in."""
        self.nodes[node.id] = node
        self.by_rank.note(node)
        return node.id


@dataclass(slots=True, kw_only=True)
class Step:
    """One instruction being translated. ``operands`` are what its operands became."""

    emission: Emission
    instruction: Instruction
    operands: tuple[Value, ...]
    operand_shapes: tuple[Shape, ...]
    id: str
    site: Site | None
    stack: tuple[Site, ...]

    def emit(
        self,
        op: str,
        operands: tuple[NodeId, ...],
        type: TensorType | None = None,
        step: str = "",
        **attrs: Attr,
    ) -> NodeId:
        """Add a node of this instruction. Without a ``type`` it has the instruction's."""
        wanted = f"{self.id}:{step}" if step else self.id
        metadata = self.instruction.metadata
        node = Node(
            id=NodeId(self.emission.free_id(wanted)),
            op=op,
            operands=operands,
            attrs=MappingProxyType(attrs),
            type=type or self.type,
            site=self.site,
            stack=self.stack,
            scope=metadata.op_name if metadata else "",
        )
        return self.emission.add(node)

    def named(self, value: Value) -> Value:
        """``value``; its node takes the instruction's own name if it was the last one made."""
        nodes = self.emission.nodes
        if (
            not isinstance(value, str)
            or not value.startswith(f"{self.id}:")
            or next(reversed(nodes)) != value
        ):
            return value
        node = nodes.pop(value)
        return self.emission.add(replace(node, id=NodeId(self.emission.free_id(self.id))))

    def scalar(self, value: float, dtype: DType, step: str) -> NodeId:
        """A constant that the instruction implies."""
        return self.emit("constant", (), TensorType(dtype, ()), step, data=(value,))

    @property
    def type(self) -> TensorType:
        """The type of the result, which is one array."""
        return tensor_type(self.instruction.shape, self.instruction.name)

    def arrays(self, count: int | None = None) -> tuple[NodeId, ...]:
        """The operands, each one array; exactly ``count`` of them."""
        if count is not None and len(self.operands) != count:
            raise self.wrong(f"has {len(self.operands)} operands, not {count}")
        return tuple(self.array(index) for index in range(len(self.operands)))

    def array(self, index: int) -> NodeId:
        """One operand, which is one array."""
        value = self.operands[index] if index < len(self.operands) else None
        if not isinstance(value, str):
            raise self.wrong(f"needs an array as operand {index}")
        return value

    def type_of(self, node: NodeId) -> TensorType:
        """The type of a node that was emitted."""
        return self.emission.nodes[node].type

    def axes(self, axes: tuple[int, ...], rank: int, what: str) -> tuple[int, ...]:
        """Distinct dimensions of an array of ``rank`` dimensions, or a refusal."""
        if len(set(axes)) != len(axes) or any(not 0 <= axis < rank for axis in axes):
            raise self.wrong(f"has {what} {list(axes)} with {rank} dimensions")
        return axes

    def transposed(self, value: NodeId, perm: tuple[int, ...], step: str) -> NodeId:
        """``value`` with its dimensions in the order ``perm``; itself where that is its own."""
        type = self.type_of(value)
        if perm == tuple(range(len(type.shape))):
            return value
        shape = tuple(type.shape[axis] for axis in perm)
        return self.emit("transpose", (value,), TensorType(type.dtype, shape), step, perm=perm)

    def reshaped(self, value: NodeId, shape: tuple[int, ...], step: str = "") -> NodeId:
        """``value`` in another shape of as many elements; itself where that is its own."""
        type = self.type_of(value)
        if type.shape == shape:
            return value
        return self.emit("reshape", (value,), TensorType(type.dtype, shape), step)

    def cast(self, value: NodeId, dtype: DType, step: str = "") -> NodeId:
        """``value`` as another dtype; itself where that is its own."""
        type = self.type_of(value)
        if type.dtype == dtype:
            return value
        return self.emit("cast", (value,), TensorType(dtype, type.shape), step)

    def wrong(self, what: str) -> InvalidGraph:
        """The refusal of an instruction that does not hold together."""
        return InvalidGraph(
            f"{self.instruction.opcode} {self.instruction.name} {what}",
            hint="the file is damaged or was edited; write it again",
        )


def leaves(shape: Shape) -> tuple[tuple[tuple[int, ...], Shape], ...]:
    """The arrays within a shape, each with its path in the tuple; tokens and handles are left out."""
    if shape.element == "tuple":
        return tuple(
            ((index, *path), leaf) for index, part in enumerate(shape.parts) for path, leaf in leaves(part)
        )
    return (((), shape),) if is_array(shape) else ()


def structured(shape: Shape, values: Mapping[tuple[int, ...], NodeId], path: tuple[int, ...] = ()) -> Value:
    """The value of a shape from the nodes of its leaves."""
    if shape.element == "tuple":
        return tuple(structured(part, values, (*path, index)) for index, part in enumerate(shape.parts))
    return values.get(path)


def paths(value: Value, path: tuple[int, ...] = ()) -> tuple[tuple[tuple[int, ...], NodeId], ...]:
    """The nodes within a value, each with its path."""
    if isinstance(value, tuple):
        return tuple(found for index, part in enumerate(value) for found in paths(part, (*path, index)))
    return () if value is None else ((path, value),)
