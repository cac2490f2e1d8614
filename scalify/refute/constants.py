"""The numbers that a program was written with, each moved a little: as far as its float may be from it.

``0.1`` is one number in a program of one framework and another, rounded to 32 bits, in that of the next. A
difference that this explains is none over the reals. Numbers of few digits are what they say.

Very low numbers are what masks are filled with. A row of attention in which everything is masked has no
meaning, and whether one is shows when these numbers become minus infinity.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from scalify.ir.graph import Attr, Graph, Node
from scalify.ir.ops.dtypes import KIND_OF
from scalify.ir.ops.spec import Array
from scalify.refute.bits import below, bits, key_of

SHORT_BITS = 12
MASKING = -1.0e4
"""Numbers as low as this are taken to mask something."""

_PRECISION: Mapping[str, float] = MappingProxyType(
    {"f16": 2.0**-11, "bf16": 2.0**-8, "f8e4m3": 2.0**-4, "f8e5m2": 2.0**-3}
)
_SINGLE = 2.0**-24


def moved_attributes(graph: Graph, number: int) -> Graph:
    """The graph with the numbers among its attributes (an eps, a scale) moved."""
    return replace(graph, nodes=tuple(_moved_node(node, number) for node in graph.nodes))


def moved(node: Node, value: Array, number: int) -> Array:
    """A constant's elements, moved."""
    if KIND_OF[node.type.dtype] not in ("float", "complex"):
        return value
    words = bits(key_of("constant", number, node.id), np.arange(value.size))
    signs = (2.0 * below(words, 2) - 1.0).reshape(value.shape)
    precision = _PRECISION.get(node.type.dtype, _SINGLE)
    if value.dtype.kind == "c":
        return value * (1.0 + precision * signs)
    with np.errstate(all="ignore"):
        return np.where(_is_short(value) | (value <= MASKING), value, value * (1.0 + precision * signs))


def masks(graph: Graph) -> bool:
    """Whether a program may mask whole rows: it holds very low numbers, or attends by a mask."""
    return any(
        (node.op == "constant" and bool((_data(node) <= MASKING).any()))
        or (node.op == "attention" and len(node.operands) == 4)
        for node in graph.nodes
    )


def with_infinity(node: Node, value: Array) -> Array:
    """A constant with minus infinity for what masks are filled with."""
    if value.dtype.kind != "f" or node.op != "constant":
        return value
    return np.where(value <= MASKING, -np.inf, value)


def _data(node: Node) -> Array:
    data = node.attrs.get("data")
    if KIND_OF[node.type.dtype] != "float" or not isinstance(data, tuple):
        return np.zeros(0)
    return np.asarray([each for each in data if isinstance(each, int | float)], dtype=np.float64)


def _is_short(value: Array) -> Array:
    """Whether a number has few binary digits, or is none."""
    fraction, _ = np.frexp(value)
    scaled = fraction * 2.0**SHORT_BITS
    return ~np.isfinite(value) | (scaled == np.rint(scaled))


def _moved_node(node: Node, number: int) -> Node:
    numbers = {name: value for name, value in node.attrs.items() if isinstance(value, float)}
    if node.op == "constant" or not numbers:
        return node
    attrs: dict[str, Attr] = dict(node.attrs)
    for name, value in numbers.items():
        sign = 1.0 if key_of("attribute", number, node.id, name) & 1 else -1.0
        exact = bool(_is_short(np.asarray(value)))
        attrs[name] = value if exact else value * (1.0 + sign * _SINGLE)
    return replace(node, attrs=MappingProxyType(attrs))
