"""Both graphs again, with their dimensions divided."""

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from types import MappingProxyType

from scalify.errors import InvalidGraph
from scalify.ir.check import check
from scalify.ir.graph import Attr, Graph, Node, TensorType
from scalify.ir.mesh import RankInt
from scalify.ir.ops.dtypes import KIND_OF
from scalify.refute.shrink.classes import Classes, Dim, numbers_in
from scalify.refute.shrink.constraints import constrain
from scalify.relate.model import Relations

Factors = Mapping[Dim, int]


def shrink(baseline: Graph, candidate: Graph, relations: Relations) -> tuple[Graph, Graph] | None:
    """The smallest pair that this finds; None where nothing can be shrunk."""
    tried = (_shrunk(baseline, candidate, relations, inner=inner) for inner in (False, True))
    made = [pair for pair in tried if pair is not None]
    return min(made, key=_elements, default=None)


def _elements(pair: tuple[Graph, Graph]) -> int:
    return sum(prod(node.type.shape) for graph in pair for node in graph.nodes)


def _shrunk(
    baseline: Graph, candidate: Graph, relations: Relations, *, inner: bool
) -> tuple[Graph, Graph] | None:
    classes = Classes()
    for side, graph in enumerate((baseline, candidate)):
        constrain(side, graph, classes, inner=inner)
    _join_inputs(baseline, candidate, relations, classes)
    factors = classes.factors()
    if all(factor == 1 for factor in factors.values()):
        return None
    pair = _divided(0, baseline, factors), _divided(1, candidate, factors)
    try:
        check(pair[0])
        check(pair[1])
    except InvalidGraph:  # an op whose dimensions hang together in a way that is not known here
        return None
    return pair


def _join_inputs(baseline: Graph, candidate: Graph, relations: Relations, classes: Classes) -> None:
    shapes = {node.id: node.type.shape for node in candidate.nodes}
    given = {node.id: node.type.shape for node in baseline.nodes}
    for relation in relations.inputs:
        own = shapes[relation.candidate]
        for part in relation.parts:
            if len(given[part.baseline]) == len(own):
                for dim in range(len(own)):
                    classes.join(Dim(0, part.baseline, dim), Dim(1, relation.candidate, dim))
    outputs = ({output.name: output.value for output in graph.outputs} for graph in (baseline, candidate))
    ones, others = outputs
    for pair in relations.outputs:
        one, other = ones[pair.baseline], others[pair.candidate]
        if len(given[one]) == len(shapes[other]):
            for dim in range(len(given[one])):
                classes.join(Dim(0, one, dim), Dim(1, other, dim))


def _divided(side: int, graph: Graph, factors: Factors) -> Graph:
    lengths = _lengths(side, graph, factors)
    return replace(graph, nodes=tuple(_node(side, node, factors, lengths) for node in graph.nodes))


def _lengths(side: int, graph: Graph, factors: Factors) -> Mapping[int, int]:
    """By what whole numbers that are lengths are divided, where all dimensions of that length agree."""
    found: dict[int, set[int]] = {}
    for node in graph.nodes:
        for dim, length in enumerate(node.type.shape):
            found.setdefault(length, set()).add(factors[Dim(side, node.id, dim)])
    return {length: min(by) for length, by in found.items() if len(by) == 1}


def _node(side: int, node: Node, factors: Factors, lengths: Mapping[int, int]) -> Node:
    by = [factors[Dim(side, node.id, dim)] for dim in range(len(node.type.shape))]
    shape = tuple(length // factor for length, factor in zip(node.type.shape, by, strict=True))
    attrs: dict[str, Attr] = dict(node.attrs)
    if node.op == "slice":
        along = [factors[Dim(side, node.operands[0], dim)] for dim in range(len(by))]
        attrs["starts"] = _each(attrs["starts"], along)
        attrs["limits"] = _limits(attrs["starts"], node.attrs["limits"], along, shape)
    if node.op == "update_slice":
        attrs["starts"] = _each(attrs["starts"], by)
    if node.op == "constant" and KIND_OF[node.type.dtype] == "int":
        attrs["data"] = _constant(attrs.get("data"), lengths)
    if node.op == "one_hot":
        attrs["classes"] = shape[-1]
    return replace(node, attrs=MappingProxyType(attrs), type=TensorType(node.type.dtype, shape))


def _constant(data: Attr | None, lengths: Mapping[int, int]) -> Attr:
    """Numbers that are lengths, or one less (the last index)."""
    assert isinstance(data, tuple)
    return tuple(_length(value, lengths) for value in data)


def _length(value: Attr, lengths: Mapping[int, int]) -> Attr:
    if isinstance(value, RankInt):
        parts = [lengths.get(part, 1) for part in numbers_in(value) if part]
        return _over(value, parts[0]) if len(set(parts)) == 1 else value
    if isinstance(value, int) and value + 1 in lengths and value not in lengths:
        return (value + 1) // lengths[value + 1] - 1
    return _over(value, lengths.get(value, 1)) if isinstance(value, int) else value


def _each(values: Attr, factors: list[int]) -> Attr:
    assert isinstance(values, tuple)
    return tuple(_over(value, factor) for value, factor in zip(values, factors, strict=True))


def _limits(starts: Attr, limits: Attr, factors: list[int], shape: tuple[int, ...]) -> Attr:
    """Where one element is read, its place may have moved to any other: the limit is one behind it."""
    assert isinstance(starts, tuple) and isinstance(limits, tuple)
    return tuple(
        _moved(start, 1) if length == 1 else _over(limit, factor)
        for start, limit, factor, length in zip(starts, limits, factors, shape, strict=True)
    )


def _over(value: Attr, factor: int) -> Attr:
    if isinstance(value, RankInt):
        terms = tuple((stride, size, each // factor) for stride, size, each in value.terms)
        kept = tuple(term for term in terms if term[2])
        return RankInt(base=value.base // factor, terms=kept) if kept else value.base // factor
    return value // factor if isinstance(value, int) else value


def _moved(value: Attr, by: int) -> Attr:
    if isinstance(value, RankInt):
        return replace(value, base=value.base + by)
    return value + by if isinstance(value, int) else value
