"""Reductions: sums, maxima, minima and products over whole dimensions; means are scaled sums."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import inf, nan, prod
from typing import cast

from scalify.ir.graph import Node
from scalify.layout.digits import ZERO
from scalify.layout.maps import IndexMap, Shape, along, transposed
from scalify.normalize.choices import where
from scalify.normalize.flat import factors, goes_outside
from scalify.normalize.hits import shared_by_hits
from scalify.normalize.lowering import Lower, Lowering, named
from scalify.normalize.movement import ints
from scalify.normalize.order import ordered
from scalify.normalize.pieces import FOLDS, by_pieces, combined
from scalify.normalize.products import multiply, product
from scalify.normalize.sums import add
from scalify.normalize.terms import Access
from scalify.normalize.windows import leading

OF_NOTHING = {"sum": 0.0, "prod": 1.0, "max": -inf, "min": inf}


def fold(low: Lowering, kind: str, x: Access, count: int) -> Access:
    """Fold the last ``count`` dimensions. Dimensions on which nothing depends fold to a factor, or vanish."""
    domain = x.index.domain
    kept = len(domain) - count
    if 0 in domain[kept:]:
        return low.number(OF_NOTHING[kind], domain[:kept])
    alive = [dim for dim in range(kept, len(domain)) if dim in x.index.reads()]
    repeats = prod(domain[dim] for dim in range(kept, len(domain)) if dim not in alive)
    inner = (*domain[:kept], *(domain[dim] for dim in alive))
    coordinates = [ZERO] * len(domain)
    for position, dim in enumerate((*range(kept), *alive)):
        coordinates[dim] = along(position, domain[dim])
    read = low.terms.read(IndexMap(inner, domain, tuple(coordinates)), x)
    if read is None:
        raise AssertionError("leaving out dimensions always composes")
    folded = _taken_apart(low, kind, read, len(alive)) if alive else read
    if kind == "sum" and repeats > 1:
        return multiply(low, folded, low.fraction(Fraction(repeats), (low.ranks,)))
    if kind == "prod" and repeats > 1:
        return low.terms.point(f"power[{repeats}]", (folded,))
    return folded


def _taken_apart(low: Lowering, kind: str, x: Access, count: int) -> Access:
    """Fold dimensions that matter, piece by piece where there are pieces along them."""
    pieces = by_pieces(low, x, count) if kind in FOLDS else None
    if pieces is None:
        return _folded(low, kind, x, count)
    result = combined(low, kind, [fold(low, kind, piece, count) for piece in pieces])
    low.terms.equate(result, low.terms.fold(kind, (x,), count))
    return result


def _folded(low: Lowering, kind: str, x: Access, count: int) -> Access:
    """Fold dimensions that matter; what divides and exponentials that do not depend on them stay outside."""
    kept = len(x.index.domain) - count
    whole = low.terms.fold(kind, (x,), count)
    shared = shared_by_hits(low, whole, ()) if kind == "sum" else None
    if shared is not None:
        return add(low, *shared)
    parts = factors(low.terms, x) if kind == "sum" else [x]
    outer = [
        part
        for part in parts
        if all(dim < kept for dim in part.index.reads()) and goes_outside(low.terms, part)
    ]
    if not outer or not all(x.index.domain[kept:]):
        return whole
    inner = product(low, [part for part in parts if part not in outer], x.index.domain)
    result = low.terms.fold(kind, (inner,), count)
    for part in outer:
        result = multiply(low, result, leading(low.terms, part, count))
    low.terms.equate(result, whole)
    return result


def last(low: Lowering, x: Access, axes: Sequence[int]) -> Access:
    """The operand with ``axes`` (of the IR, the rank not counted) moved to the end."""
    count = len(x.index.domain)
    moved = [axis + 1 for axis in axes]
    perm = [dim for dim in range(count) if dim not in moved] + moved
    read = low.terms.read(transposed(x.index.domain, perm), x)
    if read is None:
        raise AssertionError("a transposition always composes")
    return read


def restored(low: Lowering, x: Access, axes: Sequence[int], shape: Shape) -> Access:
    """A folded operand spread over ``shape`` (ranks included) again: 1 or full along ``axes``."""
    coordinates: list[int] = [dim for dim in range(len(shape)) if dim - 1 not in axes]
    index = IndexMap(shape, x.index.domain, tuple(along(dim, shape[dim]) for dim in coordinates))
    read = low.terms.read(index, x)
    if read is None:
        raise AssertionError("naming dimensions always composes")
    return read


def over(low: Lowering, kind: str, x: Access, axes: Sequence[int]) -> Access:
    """Fold ``axes`` away; a mean is a sum over a count, ``any`` and ``all`` are extremes of truth values."""
    moved = last(low, x, axes)
    if kind == "mean":
        count = prod(x.index.domain[axis + 1] for axis in axes)
        if not count:
            return low.number(nan, moved.index.domain[: -len(axes)])
        total = fold(low, "sum", moved, len(axes))
        return multiply(low, total, low.fraction(Fraction(1, count), (low.ranks,)))
    if kind in ("any", "all") and any(x.index.domain[axis + 1] == 0 for axis in axes):
        return low.fraction(Fraction(kind == "all"), moved.index.domain[: -len(axes)])
    return fold(low, {"any": "max", "all": "min"}.get(kind, kind), moved, len(axes))


def spread(low: Lowering, kind: str, x: Access, axes: Sequence[int]) -> Access:
    """Fold ``axes`` and repeat the result along them: what is subtracted or divided by in a softmax."""
    return restored(low, over(low, kind, x, axes), axes, x.index.domain)


def reduce(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """The IR's reduction."""
    (x,) = operands
    axes = ints(node, "axes")
    kind = cast(str, node.attrs["kind"])
    if kind in ("any", "all") and low.types[node.operands[0]].dtype != "bool":
        x = low.point("is_nonzero", x)
    folded = over(low, kind, x, axes)
    if not node.attrs["keepdims"]:
        return folded
    return restored(low, folded, axes, low.domain(node.type.shape))


def cumulative_sum(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """A sum over everything up to the index: a product with a triangle of ones."""
    (x,) = operands
    axis = cast(int, node.attrs["axis"])
    shape = x.index.domain
    domain = (*shape, shape[axis + 1])
    end = len(shape)
    source = tuple(along(end if dim == axis + 1 else dim, size) for dim, size in enumerate(shape))
    read = low.terms.read(IndexMap(domain, shape, source), x)
    if read is None:
        return low.unknown(node, operands)
    upto = low.point(
        "le",
        low.terms.index(domain, along(end, shape[axis + 1])),
        low.terms.index(domain, along(axis + 1, shape[axis + 1])),
    )
    return fold(low, "sum", where(low, upto, read, low.number(0.0, (low.ranks,))), 1)


GIVE_VALUES = frozenset({"topk_values", "sort"})
BY_ORDER = GIVE_VALUES | {"topk_indices", "argsort", "argmax", "argmin"}


def along_axis(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """Ops on whole lines of one axis, each line apart: sorts, top-k, argmax, gathers along the axis."""
    axis = cast(int, node.attrs["axis"])
    first = operands[0].index.domain
    if any(_beside(x.index.domain, axis) != _beside(first, axis) for x in operands):
        return low.unknown(node, operands)
    lines = [last(low, x, (axis,)) for x in operands]
    order = ordered(low, lines[0]) if node.op in BY_ORDER else None
    if order is not None:
        lines[0] = order.key
    settings = {name: value for name, value in node.attrs.items() if name not in ("axis", "keepdims")}
    name = named(node, settings)
    shape = node.type.shape
    if len(shape) < len(operands[0].index.domain) - 1:
        return low.block(name, shape, lines, len(shape))
    rest = (*shape[:axis], *shape[axis + 1 :])
    made = low.block(name, (*rest, shape[axis]), lines, len(rest))
    if order is not None and node.op in GIVE_VALUES:
        made = order.value(made)
    back = [*range(axis + 1), len(shape), *range(axis + 1, len(shape))]
    read = low.terms.read(transposed(made.index.domain, back), made)
    if read is None:
        raise AssertionError("a transposition always composes")
    return read


def _beside(domain: Shape, axis: int) -> Shape:
    return (*domain[: axis + 1], *domain[axis + 2 :])


REDUCTION: Mapping[str, Lower] = {
    "reduce": reduce,
    "cumsum": cumulative_sum,
    **dict.fromkeys(
        ("argmax", "argmin", "cumprod", "sort", "argsort", "topk_values", "topk_indices"), along_axis
    ),
}
