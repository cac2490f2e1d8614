"""Values of leaves and blocks of a lowered graph: what its terms need to be computed in NumPy."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalify.ir.graph import Attr, Graph, Node, TensorType
from scalify.ir.mesh import RankInt
from scalify.ir.ops import OPS, Call
from scalify.ir.ops.meaning.storage import stored
from scalify.normalize.lowering import named

Array = NDArray[Any]


class NodeBlocks:
    """Operations on blocks mean what their nodes mean."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._types = {node.id: node.type for node in graph.nodes}

    def __call__(self, name: str, blocks: Sequence[Array]) -> Array:
        node = next(node for node in self._graph.nodes if name in _names(node))
        spec = OPS[node.op]
        rank = 0
        if spec.across is not None or any(map(_differs, node.attrs.values())):
            *blocks, own = blocks
            rank = int(own)
        types = [self._types[operand] for operand in node.operands]
        if spec.across is not None:
            held = [stored(own, types[0].dtype) for own in blocks[0]]
            return stored(spec.across(self._call(node, types, node.attrs), held)[rank], node.type.dtype)
        held = [stored(block, given.dtype) for block, given in zip(blocks, types, strict=True)]
        attrs = node.attrs
        if name != named(node, attrs):
            attrs = {**attrs, "axis": 0}
            attrs |= {"keepdims": False} if "keepdims" in attrs else {}
        assert spec.meaning is not None
        result = spec.meaning(replace(self._call(node, types, attrs), rank=rank), held)
        return stored(np.asarray(result), node.type.dtype)

    def _call(self, node: Node, types: Sequence[TensorType], attrs: Mapping[str, Attr]) -> Call:
        return Call(op=node.op, operands=tuple(types), attrs=attrs, mesh=self._graph.mesh, declared=node.type)


def _names(node: Node) -> tuple[str, str]:
    """What a node's operation is called, of whole operands and of lines along an axis."""
    settings = {name: value for name, value in node.attrs.items() if name not in ("axis", "keepdims")}
    return named(node, node.attrs), named(node, settings)


def _differs(value: Attr) -> bool:
    return isinstance(value, RankInt) or (isinstance(value, tuple) and any(map(_differs, value)))


class Leaves(dict[str, Array]):
    """Inputs by name; the content of a constant is that of the graph's only constant."""

    def __init__(self, graph: Graph, inputs: Mapping[str, Sequence[Array]]) -> None:
        super().__init__({name: np.stack(arrays) for name, arrays in inputs.items()})
        self._graph = graph

    def __missing__(self, name: str) -> Array:
        assert name.startswith("content:")
        constants = [node for node in self._graph.nodes if node.op == "constant"]
        assert len(constants) == 1
        call = Call(op="constant", attrs=constants[0].attrs, declared=constants[0].type)
        meaning = OPS["constant"].meaning
        assert meaning is not None
        return np.asarray(meaning(call, ()))[None]
