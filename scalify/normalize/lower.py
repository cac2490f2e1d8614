"""Graph -> terms: every node as a term read through an index map.

In: a checked graph, and what its inputs are (for a candidate, the baseline's inputs read through the assumed
layout). Out: an access for every node. Work that does not depend on the rank, in the candidate, comes out as
the baseline's own terms.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from math import isfinite
from typing import cast

from scalify.ir.graph import Graph, Node, NodeId, TensorType
from scalify.ir.mesh import RankInt
from scalify.ir.ops.dtypes import KIND_OF
from scalify.layout.digits import ZERO, Expr, bounds
from scalify.layout.maps import IndexMap, along
from scalify.normalize.collective import COLLECTIVE
from scalify.normalize.composite import COMPOSITE
from scalify.normalize.contraction import CONTRACTION
from scalify.normalize.elementwise import ELEMENTWISE
from scalify.normalize.gathers import GATHERS
from scalify.normalize.lowering import Lower, Lowering
from scalify.normalize.movement import MOVEMENT
from scalify.normalize.reduction import REDUCTION
from scalify.normalize.sums import add
from scalify.normalize.terms import INDEX_EXTENT, Access, Terms
from scalify.normalize.writes import WRITES


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """What each node of a graph is, which nodes have no meaning here, and what was assumed on the way."""

    accesses: Mapping[NodeId, Access]
    unknown: tuple[Node, ...]
    assumed: frozenset[str] = frozenset()


def lower(
    nodes: Sequence[Node],
    ranks: int,
    inputs: Mapping[NodeId, Access],
    terms: Terms,
    types: Iterable[tuple[NodeId, TensorType]] = (),
) -> Lowered:
    """Lower ``nodes``, in order; ``inputs`` gives what is known already: inputs and what enters.

    ``types`` are those of operands that are not among ``nodes``.
    """
    accesses = dict(inputs)
    known = {**dict(types), **{node.id: node.type for node in nodes}}
    low = Lowering(terms=terms, ranks=ranks, types=known)
    for node in nodes:
        if node.id in accesses:
            continue
        if 0 in node.type.shape:
            accesses[node.id] = low.fraction(Fraction(0), low.domain(node.type.shape))
            continue
        operands = [accesses[operand] for operand in node.operands]
        accesses[node.id] = LOWERINGS.get(node.op, _unknown)(low, node, operands)
    return Lowered(accesses=accesses, unknown=tuple(low.unknown_nodes), assumed=frozenset(low.assumed))


def as_leaves(graph: Graph, terms: Terms, prefix: str) -> dict[NodeId, Access]:
    """Each input of a graph as a leaf of its own, named ``prefix`` and the input's name."""
    return {
        node.id: terms.leaf(f"{prefix}{node.attrs['name']}", (graph.mesh.size, *node.type.shape))
        for node in graph.inputs()
    }


def constant(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """A constant: a number, whole numbers in even steps, or a leaf that is named after its content."""
    shape = node.type.shape
    domain = low.domain(shape)
    data = cast("tuple[float | RankInt, ...] | None", node.attrs.get("data"))
    if data is None:
        return _content(low, f"{node.attrs['digest']}:{node.type.dtype}", domain)
    if KIND_OF[node.type.dtype] == "complex":
        return _content(low, f"{_digest(data)}:complex", domain)
    if any(isinstance(value, RankInt) for value in data):
        return _by_rank(low, node, data, domain)
    values = cast(tuple[float, ...], data)
    if len(set(values)) == 1 and values[0] == values[0]:
        is_whole = KIND_OF[node.type.dtype] != "float"
        return low.fraction(Fraction(values[0]), domain) if is_whole else low.number(float(values[0]), domain)
    if len(shape) == 1 and len(values) > 1 and _is_range(values):
        return low.terms.index(domain, along(1, shape[0], int(values[1] - values[0]), int(values[0])))
    content = _content(low, _digest(values), domain)
    if len(shape) == 1 and KIND_OF[node.type.dtype] == "int":
        low.listed[content] = tuple(map(int, values))
    return content


def _digest(values: tuple[float | RankInt, ...]) -> str:
    return sha256(",".join(map(repr, values)).encode()).hexdigest()


def _is_range(values: tuple[float, ...]) -> bool:
    step = values[1] - values[0]
    if not (isfinite(step) and isfinite(values[0]) and max(values) < INDEX_EXTENT):
        return False
    steady = all(later - earlier == step for earlier, later in itertools.pairwise(values))
    return steady and step == int(step) and values[0] == int(values[0]) and min(values) >= 0


def _content(low: Lowering, digest: str, domain: tuple[int, ...]) -> Access:
    shape = (1, *domain[1:])
    leaf = low.terms.leaf(f"content:{digest}:{domain[1:]}", shape)
    coordinates = (ZERO, *(along(dim, size) for dim, size in enumerate(domain) if dim))
    return Access(IndexMap(domain, shape, coordinates), leaf.term)


def _by_rank(low: Lowering, node: Node, data: tuple[float | RankInt, ...], domain: tuple[int, ...]) -> Access:
    if len(data) != 1:
        return low.unknown(node, ())
    expr = low.affine(cast(RankInt, data[0]))
    least = bounds(expr)[0]
    positive = low.terms.index(domain, Expr(expr.offset - min(least, 0), expr.terms))
    return add(low, positive, low.fraction(Fraction(min(least, 0)), domain)) if least < 0 else positive


def random(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """A draw: itself and nothing else, on every rank another."""
    return low.block(f"random:{node.attrs['key']}", node.type.shape, [*operands, low.own_rank()])


def free(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """An input that is related to nothing: any values, of this region alone, others on every rank."""
    return low.terms.leaf(f"free:{node.id}", low.domain(node.type.shape))


def _unknown(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    return low.unknown(node, operands)


LOWERINGS: Mapping[str, Lower] = {
    **ELEMENTWISE,
    **MOVEMENT,
    **CONTRACTION,
    **GATHERS,
    **REDUCTION,
    **COMPOSITE,
    **COLLECTIVE,
    **WRITES,
    "constant": constant,
    "input": free,
    "random": random,
}
