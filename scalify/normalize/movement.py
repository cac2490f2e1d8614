"""Data movement: no terms at all, only index maps, and concatenations where several sources meet."""

from collections.abc import Mapping, Sequence
from typing import cast

from scalify.ir.graph import Node
from scalify.ir.mesh import RankInt
from scalify.layout.digits import ZERO, Expr, summed
from scalify.layout.maps import IndexMap, along, broadcast, reshaped, reverse, sliced, transposed
from scalify.normalize.affine import affine, written
from scalify.normalize.choices import where
from scalify.normalize.flat import addends
from scalify.normalize.lowering import Lower, Lowering
from scalify.normalize.terms import Access
from scalify.normalize.windows import leading, neighbours, next_to, summands

RankInts = tuple[int | RankInt, ...]


def ints(node: Node, name: str) -> tuple[int, ...]:
    """An attribute that is a tuple of plain integers."""
    return cast(tuple[int, ...], node.attrs[name])


def reshape(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """A reshape never mixes ranks: dimension 0 stays."""
    (x,) = operands
    target = low.domain(node.type.shape)
    return x if x.index.domain == target else low.kept(reshaped(x.index.domain, target), x, node)


def transpose(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """Dimensions in another order."""
    (x,) = operands
    perm = (0, *(dim + 1 for dim in ints(node, "perm")))
    return low.kept(transposed(x.index.domain, perm), x, node)


def broadcast_in(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """New dimensions, and sizes of 1 repeated."""
    (x,) = operands
    dims = (0, *(dim + 1 for dim in ints(node, "dims")))
    return low.kept(broadcast(x.index.domain, low.domain(node.type.shape), dims), x, node)


def window(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """A slice, whose start may differ from rank to rank. What each rank has written there is read as that."""
    (x,) = operands
    starts = cast(RankInts, node.attrs["starts"])
    steps = ints(node, "steps")
    place, new = low.written.get(x, (None, x))
    if place == starts and set(steps) <= {1} and new.index.domain[1:] == node.type.shape:
        return new
    index = sliced(
        x.index.domain,
        (ZERO, *(low.affine(start) for start in starts)),
        low.domain(node.type.shape),
        (1, *steps),
    )
    return low.kept(index, x, node)


def cut(low: Lowering, x: Access, axis: int, start: int, stop: int) -> Access:
    """Part of an operand along one axis (of all, the rank being axis 0)."""
    shape = x.index.domain
    starts = [Expr(start if dim == axis else 0, ()) for dim in range(len(shape))]
    sizes = [stop - start if dim == axis else size for dim, size in enumerate(shape)]
    part = low.terms.read(sliced(shape, starts, sizes, (1,) * len(shape)), x)
    if part is None:
        raise AssertionError("a plain window always composes")
    return part


def concat(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """Pieces one after the other."""
    axis = cast(int, node.attrs["axis"]) + 1
    return joined(low, axis, operands)


def joined(low: Lowering, axis: int, operands: Sequence[Access]) -> Access:
    """What is not empty of the operands, one after the other."""
    pieces = [piece for piece in operands if piece.index.domain[axis]]
    return concatenated(low, axis, [part for piece in pieces for part in pieces_of(low, axis, piece)])


def pieces_of(low: Lowering, axis: int, x: Access) -> list[Access]:
    """The pieces of which a value is put together along ``axis``; itself, if it is not."""
    term, size = low.terms[x.term], x.index.domain[axis]
    along_term = int(term.op.removeprefix("cat:")) if term.op.startswith("cat:") else 0
    read = x.index.coordinates[along_term]
    if not along_term or read != along(axis, size, offset=read.offset):
        return [x]
    found: list[Access] = []
    start = -read.offset
    for piece in term.operands:
        stop = start + piece.index.domain[along_term]
        if stop > 0 and start < size:
            found.append(cut(low, x, axis, max(start, 0), min(stop, size)))
        start = stop
    return found


def concatenated(low: Lowering, axis: int, pieces: Sequence[Access]) -> Access:
    """Pieces along ``axis``; neighbouring windows of one thing are one piece."""
    joined: list[Access] = []
    for piece in pieces:
        both = _one_piece(low, joined[-1], piece, axis) if joined else None
        if both is not None:
            joined[-1] = both
        else:
            joined.append(piece)
    return joined[0] if len(joined) == 1 else low.terms.concatenation(axis, joined)


def _one_piece(low: Lowering, first: Access, second: Access, axis: int) -> Access | None:
    """Two pieces as one: windows of one thing, sums of such, or indices in even steps."""
    both = neighbours(low.terms, first, second, axis) or _one_sum(low, first, second, axis)
    one, other = affine(low.terms, first), affine(low.terms, second)
    if both is not None or one is None or other is None:
        return both
    domains = first.index.domain, second.index.domain
    maps = [IndexMap(domain, (1,), (expr,)) for domain, expr in zip(domains, (one, other), strict=True)]
    steps = next_to(maps[0], maps[1], axis)
    return None if steps is None else written(low.terms, steps.domain, steps.coordinates[0])


def _one_sum(low: Lowering, first: Access, second: Access, axis: int) -> Access | None:
    """Sums of two whose addends are neighbours. Two elements of one thing are a sum over a window of it."""
    pairs = _two_addends(low, first), _two_addends(low, second)
    if len(pairs[0]) != 2 or len(pairs[1]) != 2:
        return None
    for others in (pairs[1], pairs[1][::-1]):
        found = [neighbours(low.terms, *sides, axis) for sides in zip(pairs[0], others, strict=True)]
        if found[0] is not None and found[1] is not None:
            return low.terms.point("add", (found[0], found[1]))
    return None


def _two_addends(low: Lowering, x: Access) -> list[Access]:
    opened = summands(low.terms, x)
    if opened is None or not opened[1]:
        return addends(low.terms, x)
    inner, count = opened
    domain = inner.index.domain
    if count != 1 or domain[-1] != 2:
        return [x]
    halves = [cut(low, inner, len(domain) - 1, at, at + 1) for at in (0, 1)]
    return [leading(low.terms, half, 1) for half in halves]


def pad(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """A concatenation with the padding value; a negative padding cuts."""
    x, value = operands
    if any(ints(node, "interior")):
        return low.unknown(node, operands)
    return padded(low, x, value, tuple(zip(ints(node, "low"), ints(node, "high"), strict=True)))


def padded(low: Lowering, x: Access, value: Access, padding: Sequence[tuple[int, int]]) -> Access:
    """``value`` before and after each axis of ``x``."""
    for dim, (before, after) in enumerate(padding):
        axis = dim + 1
        size = x.index.domain[axis]
        if before < 0 or after < 0:
            x = cut(low, x, axis, max(0, -before), size - max(0, -after))
        pieces = [x]
        if before > 0:
            pieces.insert(0, _filled(low, value, x, axis, before))
        if after > 0:
            pieces.append(_filled(low, value, x, axis, after))
        x = joined(low, axis, pieces)
    return x


def _filled(low: Lowering, value: Access, like: Access, axis: int, extent: int) -> Access:
    shape = like.index.domain
    return low.spread(value, (*shape[:axis], extent, *shape[axis + 1 :]))


def reversal(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """Read from the end along some axes."""
    (x,) = operands
    return low.kept(reverse(x.index.domain, [axis + 1 for axis in ints(node, "axes")]), x, node)


def update(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """A box of the operand replaced: what is before it, the update and what is after it, axis by axis."""
    x, new = operands
    starts = cast(RankInts, node.attrs["starts"])
    if any(isinstance(start, RankInt) for start in starts):
        written = low.unknown(node, operands)
        low.written[written] = starts, new
        return written
    return replaced(low, x, new, cast(tuple[int, ...], starts), 1)


def replaced(low: Lowering, x: Access, new: Access, starts: tuple[int, ...], axis: int) -> Access:
    """A box of ``x``, from ``axis`` on (the rank counted), replaced by ``new``."""
    if axis == len(x.index.domain):
        return new
    start = starts[axis - 1]
    size, extent = x.index.domain[axis], new.index.domain[axis]
    middle = replaced(low, cut(low, x, axis, start, start + extent), new, starts, axis + 1)
    pieces = [middle]
    if start:
        pieces.insert(0, cut(low, x, axis, 0, start))
    if start + extent < size:
        pieces.append(cut(low, x, axis, start + extent, size))
    return joined(low, axis, pieces)


def triangle(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """The lower or upper triangle of the last two dimensions, zero elsewhere."""
    (x,) = operands
    domain = x.index.domain
    rows, columns = len(domain) - 2, len(domain) - 1
    diagonal = cast(int, node.attrs["k"])
    row = low.terms.index(domain, along(rows, domain[rows], offset=max(0, diagonal)))
    column = low.terms.index(domain, along(columns, domain[columns], offset=max(0, -diagonal)))
    inside = low.point("le", column, row) if node.op == "tril" else low.point("le", row, column)
    return where(low, inside, x, low.number(0.0, (low.ranks,)))


def iota(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """The index along one axis."""
    axis = cast(int, node.attrs["axis"]) + 1
    domain = low.domain(node.type.shape)
    return low.terms.index(domain, along(axis, domain[axis]))


def rank_number(low: Lowering, node: Node, operands: Sequence[Access]) -> Access:
    """A digit of the rank's number."""
    stride, size = cast(int, node.attrs["stride"]), cast(int, node.attrs["size"])
    return low.terms.index(low.domain(()), summed(0, [low.rank_digit(stride, size)]))


MOVEMENT: Mapping[str, Lower] = {
    "reshape": reshape,
    "transpose": transpose,
    "broadcast": broadcast_in,
    "slice": window,
    "concat": concat,
    "pad": pad,
    "reverse": reversal,
    "update_slice": update,
    "tril": triangle,
    "triu": triangle,
    "iota": iota,
    "rank": rank_number,
}
