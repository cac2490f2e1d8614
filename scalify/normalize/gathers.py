"""Reads at places that data says, as contractions with a one-hot row: they become algebra.

It holds for indices in range, as the IR says of these ops.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from typing import cast

from scalify.ir.graph import Node
from scalify.layout.digits import bounds, substituted
from scalify.layout.maps import IndexMap, along
from scalify.normalize.affine import affine, written
from scalify.normalize.choices import equal
from scalify.normalize.lowering import Lower, Lowering
from scalify.normalize.movement import concatenated, cut, pieces_of
from scalify.normalize.products import multiply
from scalify.normalize.reduction import fold
from scalify.normalize.terms import Access

MOST_PIECES = 16


def take(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """``x[..., indices, ...]``."""
    x, indices = operands
    axis = cast(int, node.attrs["axis"]) + 1
    listed = _of_list(low, x, axis, indices)
    if listed is not None:
        return listed
    shape, picks = x.index.domain, indices.index.domain[1:]
    rows = shape[axis]
    domain = (low.ranks, *shape[1:axis], *picks, *shape[axis + 1 :], rows)
    last = len(domain) - 1
    after = axis + len(picks)
    picked = IndexMap(
        domain,
        indices.index.domain,
        (along(0, low.ranks), *(along(axis + i, size) for i, size in enumerate(picks))),
    )
    source = IndexMap(
        domain,
        shape,
        tuple(
            along(last, rows) if dim == axis else along(dim if dim < axis else after + dim - axis - 1, size)
            for dim, size in enumerate(shape)
        ),
    )
    chosen, table = low.terms.read(picked, indices), low.terms.read(source, x)
    if chosen is None or table is None:
        return low.unknown(node, operands)
    return _looked_up(low, table, chosen)


def take_along(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """``x[..., indices[...], ...]``, each line along the axis apart."""
    x, indices = operands
    axis = cast(int, node.attrs["axis"]) + 1
    shape = indices.index.domain
    domain = (*shape, x.index.domain[axis])
    last = len(shape)
    reads = tuple(along(last if dim == axis else dim, size) for dim, size in enumerate(x.index.domain))
    table = low.terms.read(IndexMap(domain, x.index.domain, reads), x)
    over = IndexMap(domain, shape, tuple(along(dim, size) for dim, size in enumerate(shape)))
    chosen = low.terms.read(over, indices)
    if table is None or chosen is None:
        return low.unknown(node, operands)
    return _looked_up(low, table, chosen)


def _looked_up(low: Lowering, table: Access, chosen: Access) -> Access:
    """What ``table`` holds in the chosen row, rows being the last dimension of both."""
    domain = table.index.domain
    last = len(domain) - 1
    low.terms.assume_in_range(chosen, domain[last])
    known = _known(low, table, chosen, last) or _read_at(low, table, chosen, last)
    if known is not None:
        return known
    pieces = _piece_by_piece(low, table, chosen, last)
    if pieces is not None:
        return pieces
    row = low.terms.index(domain, along(last, domain[last]))
    return fold(low, "sum", multiply(low, equal(low, chosen, row), table), 1)


def _known(low: Lowering, table: Access, chosen: Access, last: int) -> Access | None:
    """A look-up of an index by an index: an expression in an expression. ``last`` is the rows' dimension."""
    row, place = affine(low.terms, table), affine(low.terms, chosen)
    if row is None or place is None:
        return None
    domain = table.index.domain
    values = (*(along(dim, size) for dim, size in enumerate(domain[:last])), place)
    expr = substituted(row, values, domain[:last])
    return None if expr is None else written(low.terms, domain[:last], expr)


def _read_at(low: Lowering, table: Access, chosen: Access, last: int) -> Access | None:
    """A look-up at places that are known, all of them rows: no more than a window."""
    place = affine(low.terms, chosen)
    domain = table.index.domain
    if place is None or bounds(place)[0] < 0 or bounds(place)[1] >= domain[last]:
        return None
    index = IndexMap(domain[:last], domain, (*(along(dim, n) for dim, n in enumerate(domain[:last])), place))
    return low.terms.read(index, table)


def _piece_by_piece(low: Lowering, table: Access, chosen: Access, last: int) -> Access | None:
    """Look-ups at places that are put together of pieces: those of the pieces, put together."""
    for axis in range(1, last):
        pieces = pieces_of(low, axis, chosen)
        if 1 < len(pieces) <= MOST_PIECES:
            ends = [0, *accumulate(piece.index.domain[axis] for piece in pieces)]
            tables = [cut(low, table, axis, *window) for window in pairwise(ends)]
            found = [_looked_up(low, *each) for each in zip(tables, pieces, strict=True)]
            return concatenated(low, axis, found)
    return None


def _of_list(low: Lowering, x: Access, axis: int, indices: Access) -> Access | None:
    """The rows of a list of numbers: windows, one after the other; None where the list is not known."""
    numbers = low.listed.get(indices)
    if numbers is None:
        return None
    groups = [(row, len([*same])) for row, same in groupby(numbers)]
    if len(groups) > MOST_PIECES or not all(0 <= row < x.index.domain[axis] for row in numbers):
        return None
    rows = [low.repeated(cut(low, x, axis, row, row + 1), axis, count) for row, count in groups]
    return concatenated(low, axis, rows)


GATHERS: Mapping[str, Lower] = {"take": take, "take_along": take_along}
