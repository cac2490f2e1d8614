"""A typed graph in single-assignment form: what one rank runs, for all ranks of a mesh at once.

Nodes stand in topological order and have one result each. A graph loaded from one device has the mesh
``SINGLE``. A distributed program is one graph that every rank runs: integers that differ between ranks
(where a shard starts) are ``RankInt`` attributes, and shapes are those of one rank.

Ranks whose programs differ in more than that (uneven shards) are one graph too, in which each rank's nodes
stand beside those of the others: it is ``unrolled``, over that many ranks, and has no mesh.

``scalify.ir.ops`` says for each op what it needs, which type it has and what it means in NumPy;
``scalify.ir.check`` says whether a graph is well-formed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NewType

from scalify.ir.mesh import SINGLE, Mesh, RankInt

NodeId = NewType("NodeId", str)

Attr = int | float | bool | str | RankInt | tuple["Attr", ...]

DType = Literal[
    "f64", "f32", "f16", "bf16", "f8e4m3", "f8e5m2",
    "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "bool", "c64", "c128",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class TensorType:
    """The type of a value on one rank. ``shape`` is () for a scalar."""

    dtype: DType
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Site:
    """A line of somebody's source."""

    file: str
    line: int
    function: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One operation. ``site`` is the line to show; ``stack`` the whole chain, outermost first.

    ``scope`` is where it stands in the model, as the framework says: ``model.layers.3.self_attn``.
    """

    id: NodeId
    op: str
    operands: tuple[NodeId, ...] = ()
    attrs: Mapping[str, Attr] = field(default_factory=lambda: MappingProxyType({}))
    type: TensorType
    site: Site | None = None
    stack: tuple[Site, ...] = ()
    scope: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One result. ``alias`` names the input whose buffer it takes over (a KV cache), where it does."""

    name: str
    value: NodeId
    alias: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """What one program computes, on each rank of ``mesh``; or, ``unrolled``, what so many ranks compute.

    ``notes`` are what its reader took for granted, in words: a verdict prints them as assumptions.
    """

    name: str
    nodes: tuple[Node, ...]
    outputs: tuple[Output, ...]
    mesh: Mesh = SINGLE
    unrolled: int = 0
    notes: tuple[str, ...] = ()

    def by_id(self) -> dict[NodeId, Node]:
        """Nodes by id, in order."""
        return {node.id: node for node in self.nodes}

    def inputs(self) -> tuple[Node, ...]:
        """What comes from outside: nodes of op ``input``, in order."""
        return tuple(node for node in self.nodes if node.op == "input")
