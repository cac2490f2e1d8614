"""Make a graph node by node: what front ends' tests, the corpus of pairs and generators write by hand.

In: ops, operands, attributes. Out: a Graph whose types are inferred and whose nodes' sites are the lines
that made them, so that a test can say which of its own lines a verdict should blame::

    build = GraphBuilder("mlp", mesh=Mesh(axes=(("tp", 2),)))
    x = build.input("x", "f32", (4, 8))
    w = build.input("w", "f32", (8, 16), role="parameter")
    build.output("y", build.add("einsum", x, w, spec="bi,io->bo"))
    graph = build.graph()
"""

import inspect
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from scalify.ir.check import check
from scalify.ir.graph import Attr, DType, Graph, Node, NodeId, Output, Site, TensorType
from scalify.ir.mesh import SINGLE, Mesh, RankInt
from scalify.ir.ops import OPS, type_of
from scalify.ir.ops.spec import mistake


class GraphBuilder:
    """A graph in the making. Every node is typed as it is added; a wrong one raises InvalidGraph."""

    def __init__(self, name: str, *, mesh: Mesh = SINGLE) -> None:
        self.name = name
        self.mesh = mesh
        self._nodes: dict[NodeId, Node] = {}
        self._outputs: list[Output] = []
        self._scope = ""

    def add(
        self,
        op: str,
        *operands: NodeId,
        dtype: DType | None = None,
        shape: tuple[int, ...] | None = None,
        id: str | None = None,
        site: Site | None = None,
        stack: tuple[Site, ...] = (),
        scope: str | None = None,
        attrs: Mapping[str, Attr] = MappingProxyType({}),
        **more_attrs: Attr,
    ) -> NodeId:
        """Add one node. Attributes that are not given have the op's defaults.

        They are given by name, or as a mapping in ``attrs``, or both.

        ``shape`` is needed where it does not follow from the operands (reshape, broadcast, iota, ...),
        ``dtype`` for a cast, a leaf, or to declare another promotion than ours.
        """
        node_id = NodeId(id) if id else self._free_id(op)
        if node_id in self._nodes:
            raise mistake(f"there is a node {node_id!r} already")
        given = {**attrs, **more_attrs}
        whole = {**_defaults(op, given), **given}
        self._nodes[node_id] = Node(
            id=node_id,
            op=op,
            operands=operands,
            attrs=MappingProxyType(whole),
            type=self._type(op, operands, whole, dtype, shape),
            site=site or _caller(),
            stack=stack,
            scope=self._scope if scope is None else scope,
        )
        return node_id

    def input(
        self,
        name: str,
        dtype: DType,
        shape: tuple[int, ...],
        *,
        role: str = "input",
        position: int | None = None,
        site: Site | None = None,
        scope: str | None = None,
    ) -> NodeId:
        """Add an input; its id is its name where that is free."""
        place: dict[str, Attr] = {} if position is None else {"position": position}
        free = None if NodeId(name) in self._nodes else name
        attrs: dict[str, Attr] = {"name": name, "role": role, **place}
        return self.add("input", dtype=dtype, shape=shape, id=free, site=site, scope=scope, attrs=attrs)

    def constant(
        self, data: float | RankInt | tuple[float | RankInt, ...], dtype: DType, shape: tuple[int, ...] = ()
    ) -> NodeId:
        """Add a constant: one number for all elements, or all of them row-major."""
        values = data if isinstance(data, tuple) else (data,)
        return self.add("constant", dtype=dtype, shape=shape, data=values)

    def output(self, name: str, value: NodeId, *, alias: str | None = None) -> None:
        """Name a node as a result."""
        self._outputs.append(Output(name=name, value=value, alias=alias))

    def type(self, value: NodeId) -> TensorType:
        """The type of a node that was added."""
        if value not in self._nodes:
            raise mistake(f"there is no node {value!r} yet")
        return self._nodes[value].type

    @contextmanager
    def scope(self, name: str) -> Generator[None]:
        """Nodes added within stand in ``name`` of the model, below the scope around."""
        outer = self._scope
        self._scope = f"{outer}.{name}" if outer else name
        try:
            yield
        finally:
            self._scope = outer

    def graph(self) -> Graph:
        """What was made so far, checked."""
        graph = Graph(
            name=self.name, nodes=tuple(self._nodes.values()), outputs=tuple(self._outputs), mesh=self.mesh
        )
        check(graph)
        return graph

    def _type(
        self,
        op: str,
        operands: tuple[NodeId, ...],
        attrs: dict[str, Attr],
        dtype: DType | None,
        shape: tuple[int, ...] | None,
    ) -> TensorType:
        types = tuple(self.type(operand) for operand in operands)
        declared = None
        if shape is not None or op == "cast":
            fallback: DType = types[0].dtype if types else "i64" if op == "iota" else "f32"
            declared = TensorType(dtype or fallback, types[0].shape if shape is None else shape)
        inferred = type_of(op, types, attrs, mesh=self.mesh, declared=declared)
        if dtype is None or dtype == inferred.dtype:
            return inferred
        return type_of(op, types, attrs, mesh=self.mesh, declared=TensorType(dtype, inferred.shape))

    def _free_id(self, op: str) -> NodeId:
        number = len(self._nodes)
        while NodeId(f"{op}_{number}") in self._nodes:
            number += 1
        return NodeId(f"{op}_{number}")


def _defaults(op: str, given: dict[str, Attr]) -> dict[str, Attr]:
    if op not in OPS:
        return {}
    return {
        name: spec.default
        for name, spec in OPS[op].attrs.items()
        if spec.default is not None and name not in given
    }


def _caller() -> Site | None:
    """The innermost line outside this module."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    if frame is None:
        return None
    return Site(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
