"""Folds over what is put together of pieces: those of the pieces, put together.

The sum over text and image is the sum over the text and the sum over the image. What is folded may be
computed from pieces in point-wise operations and in folds over other dimensions (scores of a text's and an
image's keys): the computation is taken apart where the pieces meet.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from scalify.layout.maps import along
from scalify.normalize.choices import equal, where
from scalify.normalize.exponentials import exp
from scalify.normalize.indices import compared
from scalify.normalize.lowering import Lowering
from scalify.normalize.movement import cut
from scalify.normalize.products import multiply, reciprocal
from scalify.normalize.sums import add
from scalify.normalize.terms import Access
from scalify.normalize.windows import opened

MOST_PIECES = 16
MOST_LOOKED_INTO = 40

FOLDS = frozenset({"sum", "max", "min", "prod"})


def by_pieces(low: Lowering, x: Access, count: int) -> list[Access] | None:
    """The pieces that ``x`` has along one of its last ``count`` dimensions, all over its own dimensions."""
    domain = x.index.domain
    for dim in range(len(domain) - count, len(domain)):
        taken = _TakenApart(low, dim)
        cuts = taken.cuts(x)
        if 0 < len(cuts) < MOST_PIECES:
            bounds = [0, *cuts, domain[dim]]
            found = [taken.part(x, window) for window in pairwise(bounds)]
            pieces = [piece for piece in found if piece is not None]
            return pieces if len(pieces) == len(found) else None
    return None


def combined(low: Lowering, kind: str, parts: Sequence[Access]) -> Access:
    """The folds of all pieces as one."""
    result = parts[0]
    for part in parts[1:]:
        result = _COMBINED[kind](low, result, part)
    return result


_COMBINED: Mapping[str, Callable[[Lowering, Access, Access], Access]] = {
    "sum": add,
    "prod": multiply,
    "max": lambda low, one, other: low.point("max", one, other),
    "min": lambda low, one, other: low.point("min", one, other),
}


def _meeting(low: Lowering, x: Access, dim: int, axis: int) -> list[int]:
    size, read = x.index.domain[dim], x.index.coordinates[axis]
    if read != along(dim, size, offset=read.offset):
        return []
    place = -read.offset
    found: list[int] = []
    for piece in low.terms[x.term].operands[:-1]:
        place += piece.index.domain[axis]
        if 0 < place < size:
            found.append(place)
    return found


def _is_open(op: str, reduced: int) -> bool:
    return ":" not in op and (not reduced or op in FOLDS)


class _TakenApart:
    """A computation along one dimension of its reader's, as far as it is looked into."""

    def __init__(self, low: Lowering, dim: int) -> None:
        self._low = low
        self._dim = dim
        self._cuts: dict[Access, list[int]] = {}
        self._parts: dict[tuple[Access, tuple[int, int]], Access | None] = {}

    def cuts(self, x: Access) -> list[int]:
        """Where pieces meet along the dimension, in the first concatenation that is met."""
        if self._dim not in x.index.reads():
            return []
        if x not in self._cuts:
            self._cuts[x] = []
            if len(self._cuts) < MOST_LOOKED_INTO:
                self._cuts[x] = self._found(x)
        return self._cuts[x]

    def _found(self, x: Access) -> list[int]:
        term = self._low.terms[x.term]
        if term.op.startswith("cat:"):
            return _meeting(self._low, x, self._dim, int(term.op.removeprefix("cat:")))
        if not _is_open(term.op, term.reduced):
            return []
        below = (self.cuts(each) for each in opened(self._low.terms, x) if each is not None)
        return next((found for found in below if found), [])

    def part(self, x: Access, window: tuple[int, int]) -> Access | None:
        """A window of ``x``, computed from windows of its pieces where there are pieces below."""
        if (x, window) not in self._parts:
            self._parts[x, window] = self._made(x, window)
        return self._parts[x, window]

    def _made(self, x: Access, window: tuple[int, int]) -> Access | None:
        term = self._low.terms[x.term]
        if not self.cuts(x) or term.op.startswith("cat:"):
            return cut(self._low, x, self._dim, *window)
        operands: list[Access] = []
        for operand in opened(self._low.terms, x):
            part = None if operand is None else self.part(operand, window)
            if part is None:
                return None
            operands.append(part)
        if term.reduced:
            return self._low.terms.fold(term.op, operands, term.reduced)
        return _made(self._low, term.op, operands)


def _made(low: Lowering, op: str, operands: Sequence[Access]) -> Access:
    """A point-wise operation, as it is written."""
    if op in _WRITTEN:
        return _WRITTEN[op](low, *operands)
    if op in ("le", "lt", "ne", "eq"):
        written = compared(low, op, *operands)
        if written is not None:
            return written
        if op == "eq":
            return equal(low, *operands)
    return low.terms.point(op, operands)


_WRITTEN: Mapping[str, Callable[..., Access]] = {
    "add": add,
    "mul": multiply,
    "exp": exp,
    "reciprocal": reciprocal,
    "where": where,
}
