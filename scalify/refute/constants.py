"""The numbers that a program was written with, each moved a little: as far as its float may be from it.

``0.1`` is one number in a program of one framework and another, rounded to 32 bits, in that of the next. A
difference that this explains is none over the reals. Numbers of few digits, and whole ones, are what they
say; those of a type of 8 or 16 bits, or of a program that computes in one, may have been rounded to it. An
element of a table may have been computed in single precision, and is as uncertain as the table's largest.

Very low numbers are what masks are filled with, and very large ones that are subtracted. A row of attention
in which everything is masked has no meaning, and whether one is shows when these numbers become infinite.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from scalify.ir.graph import Attr, DType, Graph, Node, NodeId
from scalify.ir.ops.dtypes import KIND_OF
from scalify.ir.ops.spec import Array
from scalify.refute.bits import key_of, signed

SHORT_BITS = 12
WHOLE = 2.0**22
MASKING = 1.0e4
"""Numbers as low as minus that, or as large and subtracted, are taken to mask something."""

_NARROW: Mapping[DType, tuple[int, int]] = MappingProxyType(
    {"f16": (11, 6), "bf16": (8, 4), "f8e4m3": (4, 2), "f8e5m2": (3, 2)}
)
"""Bits of a narrow float's fraction, and how many a number has at most that was hardly rounded to it."""

_SINGLE = 2.0**-24
_SCALING = frozenset({"broadcast", "reshape", "cast", "mul", "transpose", "slice", "where"})


def narrow(graph: Graph) -> tuple[DType, ...]:
    """The float types of 16 bits and less in which a program computes."""
    return tuple(dtype for dtype in _NARROW if any(node.type.dtype == dtype for node in graph.nodes))


def moved_attributes(graph: Graph, number: int) -> Graph:
    """The graph with the numbers among its attributes (an eps, a scale) moved; odd runs mirror even ones."""
    return replace(graph, nodes=tuple(_moved_node(node, number) for node in graph.nodes))


def moved(node: Node, value: Array, number: int, narrow: tuple[DType, ...] = ()) -> Array:
    """A constant's elements, moved."""
    if KIND_OF[node.type.dtype] not in ("float", "complex"):
        return value
    steps = signed(key_of("constant", number // 2, node.id), value.shape) * (1 - 2 * (number % 2))
    if value.dtype.kind == "c":
        turned = signed(key_of("constant", number // 2, node.id, "i"), value.shape)
        return value * (1.0 + _SINGLE * (steps + 1j * turned))
    finite = np.abs(value[np.isfinite(value)])
    table = _SINGLE * finite[finite < MASKING].max(initial=0.0) if value.size > 1 else 0.0
    with np.errstate(all="ignore"):
        by = np.where(_is_exact(value), 0.0, np.maximum(_SINGLE * np.abs(value), table))
        for dtype in _NARROW.keys() & {node.type.dtype, *narrow}:
            fraction, few = _NARROW[dtype]
            rounded = _is_short(value, fraction) & ~_is_short(value, few) & ~_is_whole(value)
            by = np.where(rounded, np.maximum(by, 2.0**-fraction * np.abs(value)), by)
        return np.where(by == 0, value, value + by * steps)


def masks(graph: Graph) -> bool:
    """Whether a program may mask whole rows: it holds numbers for that, or attends by a mask."""
    return bool(masking(graph)) or any(
        node.op == "attention" and len(node.operands) == 4 for node in graph.nodes
    )


def masking(graph: Graph) -> frozenset[NodeId]:
    """The constants that masks are filled with: very low ones, and very large ones that are subtracted."""
    found: set[NodeId] = set()
    large: dict[NodeId, frozenset[NodeId]] = {}
    for node in graph.nodes:
        if node.op == "constant":
            data = _data(node)
            if (data <= -MASKING).any():
                found.add(node.id)
            if (data >= MASKING).any():
                large[node.id] = frozenset({node.id})
            continue
        below = node.operands[1:] if node.op == "sub" else node.operands if node.op == "neg" else ()
        for operand in below:
            found |= large.get(operand, frozenset())
        if node.op in _SCALING:
            large[node.id] = frozenset[NodeId]().union(*(large.get(each, ()) for each in node.operands))
    return frozenset(found)


def with_infinity(value: Array) -> Array:
    """A constant that masks, with infinity for what masks are filled with."""
    return np.where(np.abs(value) >= MASKING, np.copysign(np.inf, value), value)


def with_level(node: Node, level: float) -> Attr:
    """The numbers of a constant that masks, none as large as masks are filled with but so large."""
    data = node.attrs["data"]
    if not isinstance(data, tuple):
        return data
    return tuple(
        float(np.copysign(level, each)) if isinstance(each, int | float) and abs(each) >= MASKING else each
        for each in data
    )


def _data(node: Node) -> Array:
    data = node.attrs.get("data")
    if KIND_OF[node.type.dtype] != "float" or not isinstance(data, tuple):
        return np.zeros(0)
    return np.asarray([each for each in data if isinstance(each, int | float)], dtype=np.float64)


def _is_exact(value: Array) -> Array:
    """Whether a number has few binary digits, is whole, masks, or is none."""
    return _is_short(value, SHORT_BITS) | _is_whole(value) | (value <= -MASKING)


def _is_short(value: Array, digits: int) -> Array:
    fraction, _ = np.frexp(value)
    scaled = fraction * 2.0**digits
    return ~np.isfinite(value) | (scaled == np.rint(scaled))


def _is_whole(value: Array) -> Array:
    return (np.abs(value) < WHOLE) & (value == np.rint(value))


def _moved_node(node: Node, number: int) -> Node:
    numbers = {name: value for name, value in node.attrs.items() if isinstance(value, float)}
    if node.op == "constant" or not numbers:
        return node
    attrs: dict[str, Attr] = dict(node.attrs)
    for name, value in numbers.items():
        step = float(signed(key_of("attribute", number // 2, node.id, name), ())) * (1 - 2 * (number % 2))
        exact = bool(_is_exact(np.asarray(value)))
        attrs[name] = value if exact else value * (1.0 + step * _SINGLE)
    return replace(node, attrs=MappingProxyType(attrs))
