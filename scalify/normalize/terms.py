"""Terms: what is left of a graph when data movement is in the index maps and composites are taken apart.

A term is a leaf, a point-wise operation, a reduction, a concatenation, a combination over ranks, or an
operation without a meaning. It reads its operands through index maps, so a transpose, a shard or an
all-gather is nowhere a term of its own. Equal terms are one term (they have one number), in the baseline
and in the candidate alike: what every rank computes just as the baseline does *is* the baseline's term.

The space of a term is the shape it has: dimension 0 is the rank (of size 1 where nothing depends on it),
then dimensions longer than 1 on which it depends. ``reduced`` trailing dimensions of the operands' domain are
not part of it: they are folded.
"""

from ast import literal_eval
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NewType

from scalify.layout.digits import ZERO, Expr, bounds
from scalify.layout.maps import IndexMap, Shape, along, is_onto, then
from scalify.normalize.alive import Alive, alive, reads_by_digits

TermId = NewType("TermId", int)

INDEX_EXTENT = 2**62
"""The length of the leaf whose element ``i`` is the number ``i``: all indices and whole constants read it."""


SPECIAL_NUMBERS = ("inf", "-inf", "nan")

COMMUTATIVE = frozenset({"add", "mul", "max", "min"})


@dataclass(frozen=True, slots=True)
class Access:
    """A term read through a map: ``index.codomain`` is the term's space."""

    index: IndexMap
    term: TermId


@dataclass(frozen=True, slots=True)
class Term:
    """``op`` names what is computed, with all its attributes: equal op and operands, equal terms."""

    op: str
    space: Shape
    operands: tuple[Access, ...] = ()
    reduced: int = 0


class Terms:
    """All terms of a problem, each once, numbered in the order in which they were first needed.

    ``joined`` keeps what neighbouring windows were found to be (``scalify.normalize.windows``).
    """

    def __init__(self) -> None:
        self._terms: list[Term] = []
        self._numbers: dict[Term, TermId] = {}
        self.in_range: set[tuple[TermId, int]] = set()
        self.equal: dict[TermId, dict[TermId, None]] = {}
        self.joined: dict[tuple[Access, Access, int], Access | None] = {}

    def __getitem__(self, number: TermId) -> Term:
        return self._terms[number]

    def __len__(self) -> int:
        return len(self._terms)

    def numbers(self) -> Iterator[TermId]:
        """All numbers, operands before what reads them."""
        return (TermId(number) for number in range(len(self._terms)))

    def add(self, term: Term) -> TermId:
        """The number of this term, which may be that of an equal one: a sum of two or a product is known the
        other way round too."""
        number = self._numbers.get(term)
        if number is None and term.op in COMMUTATIVE and len(term.operands) == 2 and not term.reduced:
            number = self._numbers.get(Term(term.op, term.space, term.operands[::-1]))
        if number is None:
            number = TermId(len(self._terms))
            self._terms.append(term)
            self._numbers[term] = number
        return number

    def assume_in_range(self, access: Access, rows: int) -> None:
        """Note that a term is looked up among ``rows``: all its values are from 0 up to there.

        Of a term of which only a part is looked up, nothing is noted.
        """
        if is_onto(access.index):
            self.in_range.add((access.term, rows))

    def equate(self, one: Access, other: Access) -> None:
        """Note that two terms are equal, written otherwise: an engine may take either.

        Only what reads both wholly and through one map says so; of others nothing is noted.
        """
        if one.index == other.index and one.term != other.term and is_onto(one.index):
            self.equal.setdefault(one.term, {})[other.term] = None

    def leaf(self, name: str, shape: Shape) -> Access:
        """An input, read as it stands."""
        term = self.add(Term(f"leaf:{name}", shape))
        return Access(IndexMap(shape, shape, tuple(along(d, n) for d, n in enumerate(shape))), term)

    def index(self, domain: Shape, expr: Expr) -> Access:
        """The whole numbers that ``expr`` gives over ``domain``; none may be negative."""
        if not expr.terms and expr.offset:
            return self.number(domain, Fraction(expr.offset))
        term = self.add(Term("index", (1, INDEX_EXTENT)))
        return Access(IndexMap(domain, (1, INDEX_EXTENT), (ZERO, expr)), term)

    def number(self, domain: Shape, value: Fraction) -> Access:
        """One number, everywhere on ``domain``."""
        if not value:
            return self.index(domain, ZERO)
        term = self.add(Term(f"number:{value}", (1,)))
        return Access(IndexMap(domain, (1,), (ZERO,)), term)

    def finite_number(self, number: TermId) -> Fraction | None:
        """The number that a term is, if it is one."""
        prefix, _, text = self[number].op.partition(":")
        return Fraction(text) if prefix == "number" and text not in SPECIAL_NUMBERS else None

    def special(self, domain: Shape, name: str) -> Access:
        """One of ``SPECIAL_NUMBERS``, everywhere on ``domain``."""
        term = self.add(Term(f"number:{name}", (1,)))
        return Access(IndexMap(domain, (1,), (ZERO,)), term)

    def point(self, op: str, operands: Sequence[Access]) -> Access:
        """A point-wise operation on operands that are read over one and the same domain."""
        return self.fold(op, operands, 0)

    def fold(self, op: str, operands: Sequence[Access], reduced: int, made: int = 0) -> Access:
        """An operation whose last ``reduced`` dimensions of the common domain are folded away.

        Kept dimensions on which no operand depends, and digits of them, are no part of the term: the result
        repeats it along them.
        The exception are the ``made`` last kept ones, along which the operation itself differs.
        """
        domain = operands[0].index.domain
        kept = len(domain) - reduced
        left, read = _read_over(
            [domain] * len(operands), operands, (*range(kept - made, kept), *range(kept, len(domain)))
        )
        count = len(left.dims) - reduced
        space = left.space(domain)[:count]
        term = self.add(Term(op, space, read, reduced))
        return Access(IndexMap(domain[:kept], space, left.projection(domain)[:count]), term)

    def concatenation(self, axis: int, pieces: Sequence[Access]) -> Access:
        """Pieces one after the other along ``axis`` of their domains, which agree elsewhere."""
        shapes = [piece.index.domain for piece in pieces]
        left, read = _read_over(shapes, pieces, (axis,))
        domain = _with(shapes[0], axis, sum(shape[axis] for shape in shapes))
        space = left.space(domain)
        term = self.add(Term(f"cat:{left.place(axis)}", space, read))
        return Access(IndexMap(domain, space, left.projection(domain)), term)

    def read(self, index: IndexMap, access: Access) -> Access | None:
        """An operand read through a further map; a window of a concatenation is one of its pieces.

        None where the chain of maps is not expressible as one.
        """
        combined = then(index, access.index)
        if combined is None:
            return None
        term = self[access.term]
        if not term.op.startswith("cat:"):
            return Access(combined, access.term)
        axis = int(term.op.removeprefix("cat:"))
        low, high = bounds(combined.coordinates[axis])
        start = 0
        for piece in term.operands:
            extent = piece.index.domain[axis]
            if start <= low and high < start + extent:
                moved = list(combined.coordinates)
                moved[axis] = Expr(moved[axis].offset - start, moved[axis].terms)
                inside = IndexMap(combined.domain, piece.index.domain, tuple(moved))
                return self.read(inside, piece)
            start += extent
        return Access(combined, access.term)


def _with(shape: Shape, axis: int, size: int) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _read_over(
    domains: Sequence[Shape], operands: Sequence[Access], whole: Collection[int]
) -> tuple[Alive, tuple[Access, ...]]:
    """What of their domains matters to operands (dimensions in ``whole`` do), and they, read over that."""
    indices = [access.index for access in operands]
    if any(reads_by_digits(domain, [index]) for domain, index in zip(domains, indices, strict=True)):
        left = alive(domains[0], indices, whole, by_digits=True)
        read = [then(left.embedding(d), index) for d, index in zip(domains, indices, strict=True)]
        found = [Access(i, o.term) for i, o in zip(read, operands, strict=True) if i is not None]
        if len(found) == len(operands):
            return left, tuple(found)
    left = alive(domains[0], indices, whole, by_digits=False)
    return left, tuple(
        Access(composed(left.embedding(domain), access.index), access.term)
        for domain, access in zip(domains, operands, strict=True)
    )


def composed(inner: IndexMap, outer: IndexMap) -> IndexMap:
    """``then`` where it cannot fail: ``inner`` only leaves out or renames whole dimensions."""
    composition = then(inner, outer)
    if composition is None:
        raise AssertionError(f"a renaming of dimensions must compose: {inner} with {outer}")
    return composition


def combination(op: str) -> tuple[str, tuple[tuple[int, int], ...]] | None:
    """Kind and digits of an operation that combines over ranks; None of any other."""
    name, _, rest = op.partition(":")
    if name != "over_ranks":
        return None
    kind, _, digits = rest.partition(":")
    return kind, literal_eval(digits)


def number_of(terms: Terms, access: Access) -> Fraction | None:
    """The finite number that an operand is everywhere, if it is one."""
    op = terms[access.term].op
    if op == "index":
        expr = access.index.coordinates[1]
        return None if expr.terms else Fraction(expr.offset)
    return terms.finite_number(access.term)
