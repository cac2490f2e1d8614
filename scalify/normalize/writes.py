"""Writes at places that data say: every row asks what is written to it.

What is added is ``x[r] + sum over n of (index[n] == r) * src[n]``. Where rows are replaced, of those that
address the same one the last counts: a few are replaced one after the other. Of many, with
``last[r] = max over n of (index[n] == r) * (n + 1)``, a row holds ``x[r]`` where that is 0, and else the sum
over n of ``(last[r] == n + 1) * src[n]``. Rows that are known to lie side by side are a window that is
replaced.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import cast

from scalify.ir.graph import Node
from scalify.ir.ops.dtypes import KIND_OF
from scalify.layout.digits import ZERO, Expr, Term
from scalify.layout.maps import IndexMap, Shape, along, broadcast
from scalify.normalize.affine import affine
from scalify.normalize.choices import equal, where
from scalify.normalize.lookups import settled
from scalify.normalize.lowering import Lower, Lowering
from scalify.normalize.movement import cut, joined, pieces_of, replaced
from scalify.normalize.products import multiply
from scalify.normalize.reduction import fold
from scalify.normalize.sums import add
from scalify.normalize.terms import Access

ONE_BY_ONE = 8
"""So many rows are at most replaced one after the other, as a loop over them would."""


def index_put(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """``x[i0, i1, ...] = src``, or added to what is there."""
    x, src, *indices = operands
    written = low.common(*indices)
    shape = x.index.domain
    if _is_either(node) or 0 in written:
        return low.unknown(node, operands)
    indices = [low.spread(index, written) for index in indices]
    for dim, index in enumerate(indices, 1):
        low.terms.assume_in_range(index, shape[dim])
    src = low.spread(src, (*written, *shape[1 + len(indices) :]))
    start = _start(low, indices) if node.attrs["mode"] == "set" else None
    if start is not None and start + written[1] <= shape[1]:
        return replaced(low, x, src, (start, *[0] * (len(shape) - 2)), 1)
    first, put = 0, list[Access]()
    for piece in pieces_of(low, 1, x):
        put.append(_put(low, node, piece, first, src, indices))
        first += piece.index.domain[1]
    return joined(low, 1, put)


def scatter(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """``x[..., indices, ...] = src`` along one axis, each line apart, or added to what is there."""
    x, indices, src = operands
    axis = cast(int, node.attrs["axis"]) + 1
    shape, written = x.index.domain, indices.index.domain
    sizes = [size for dim, size in enumerate(written) if dim != axis]
    if _is_either(node) or 0 in written or sizes != [*shape[:axis], *shape[axis + 1 :]]:
        return low.unknown(node, operands)
    for dim, size in enumerate(written):
        src = cut(low, src, dim, 0, size) if dim and src.index.domain[dim] > size else src
    domain = (*shape, written[axis])
    dims = [len(shape) if dim == axis else dim for dim in range(len(shape))]
    low.terms.assume_in_range(indices, shape[axis])
    row = low.terms.index(domain, along(axis, shape[axis]))
    hit = equal(low, _over(low, indices, domain, dims), row)
    return _written(low, node, x, _over(low, src, domain, dims), hit, 1)


def _is_either(node: Node) -> bool:
    """Of truth values the sum is whether any holds: no formula here."""
    return node.attrs["mode"] == "add" and KIND_OF[node.type.dtype] == "bool"


def _start(low: Lowering, indices: Sequence[Access]) -> int | None:
    """The first row, if rows of one dimension are written side by side, from the same one on every rank."""
    expr = affine(low.terms, indices[0]) if len(indices) == 1 else None
    if expr is None or len(indices[0].index.domain) != 2 or expr.offset < 0:
        return None
    return expr.offset if expr.terms == along(1, indices[0].index.domain[1]).terms else None


def _put(low: Lowering, node: Node, x: Access, first: int, src: Access, indices: Sequence[Access]) -> Access:
    """Into the rows of dimension 1 from ``first`` on. In the domain, what is written lies behind x."""
    shape, written = x.index.domain, indices[0].index.domain[1:]
    domain = (*shape, *written)
    places = [0, *range(len(shape), len(domain))]
    hits: Access | None = None
    for dim, index in enumerate(indices, 1):
        row = low.terms.index(domain, along(dim, shape[dim], offset=0 if dim > 1 else first))
        hit = equal(low, _over(low, index, domain, places), row)
        hits = hit if hits is None else multiply(low, hits, hit)
    assert hits is not None
    rest = range(1 + len(indices), len(shape))
    return _written(low, node, x, _over(low, src, domain, [*places, *rest]), hits, len(written))


def _written(low: Lowering, node: Node, x: Access, src: Access, hits: Access, count: int) -> Access:
    """The rows of ``x`` after the write; over the last ``count`` dimensions lies what is written."""
    domain = hits.index.domain
    kept = len(domain) - count
    if node.attrs["mode"] == "add":
        return add(low, x, settled(low, fold(low, "sum", settled(low, multiply(low, hits, src)), count)))
    if prod(domain[kept:]) <= ONE_BY_ONE:
        for place in product(*map(range, domain[kept:])):
            x = where(low, _at(low, hits, place), _at(low, src, place), x)
        return x
    number = low.terms.index(domain, _order(domain, kept))
    last = fold(low, "max", multiply(low, hits, number), count)
    chosen = equal(low, _over(low, last, domain, range(kept)), number)
    untouched = equal(low, last, low.terms.index(last.index.domain, ZERO))
    return where(low, untouched, x, fold(low, "sum", multiply(low, chosen, src), count))


def _order(domain: Shape, kept: int) -> Expr:
    """Which one is written how late, from 1 on."""
    places = range(kept, len(domain))
    terms = [Term(dim, 1, domain[dim], prod(domain[dim + 1 :])) for dim in places if domain[dim] > 1]
    return Expr(1, tuple(terms))


def _at(low: Lowering, x: Access, place: Sequence[int]) -> Access:
    """What stands at one place of the last dimensions."""
    kept = x.index.domain[: len(x.index.domain) - len(place)]
    coordinates = (*(along(dim, size) for dim, size in enumerate(kept)), *(Expr(at, ()) for at in place))
    read = low.terms.read(IndexMap(kept, x.index.domain, coordinates), x)
    if read is None:
        raise AssertionError("naming a place always composes")
    return read


def _over(low: Lowering, x: Access, domain: Shape, dims: Sequence[int]) -> Access:
    """An operand over a larger domain, of which its dimensions are ``dims``."""
    read = low.terms.read(broadcast(x.index.domain, domain, dims), x)
    if read is None:
        raise AssertionError("a broadcast always composes")
    return read


WRITES: Mapping[str, Lower] = {"index_put": index_put, "scatter": scatter}
