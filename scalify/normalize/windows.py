"""The same computation on two neighbouring windows is one computation on both."""

from collections.abc import Iterator

from scalify.layout.digits import ZERO, Expr, Term, summed
from scalify.layout.maps import IndexMap, Shape, along, part
from scalify.normalize.affine import affine, written
from scalify.normalize.terms import Access, Terms

MOST_LOOKED_INTO = 200
"""So many pairs of values are compared at most to join two."""

MOST = 2**62
"""More than any index: the extent of what an expression of no tensor in particular may reach."""


def neighbours(terms: Terms, first: Access, second: Access, dim: int) -> Access | None:
    """What reads as ``first`` and then, further along ``dim``, as ``second``; None if nothing is found.

    Their domains agree but for ``dim``. Point-wise operations and folds are looked into.
    """
    return _neighbours(terms, first, second, dim, len(terms.joined) + MOST_LOOKED_INTO)


def _neighbours(terms: Terms, first: Access, second: Access, dim: int, most: int) -> Access | None:
    """``most`` is how many pairs may be known when this call has done: computations have many paths."""
    key = first, second, dim
    if key not in terms.joined and len(terms.joined) < most:
        terms.joined[key] = None
        terms.joined[key] = _joined(terms, first, second, dim, most)
    return terms.joined.get(key)


def _joined(terms: Terms, first: Access, second: Access, dim: int, most: int) -> Access | None:
    if first.term == second.term:
        index = next_to(first.index, second.index, dim)
        if index is not None:
            return Access(index, first.term)
    one, other = terms[first.term], terms[second.term]
    if "index" in (one.op, other.op):
        return _counted_on(terms, first, second, dim)
    if one.op != other.op or one.reduced != other.reduced or not one.operands or ":" in one.op:
        return None
    joined: list[Access] = []
    for left, right in zip(opened(terms, first), opened(terms, second), strict=True):
        both = _neighbours(terms, left, right, dim, most) if left is not None and right is not None else None
        if both is None:
            return None
        joined.append(both)
    return terms.fold(one.op, joined, one.reduced)


def _counted_on(terms: Terms, first: Access, second: Access, dim: int) -> Access | None:
    """Indices that go on in even steps, where one of them may be a single number."""
    one, other = affine(terms, first), affine(terms, second)
    if one is None or other is None:
        return None
    steps = next_to(
        IndexMap(first.index.domain, (MOST,), (one,)), IndexMap(second.index.domain, (MOST,), (other,)), dim
    )
    return None if steps is None else written(terms, steps.domain, steps.coordinates[0])


def opened(terms: Terms, access: Access) -> list[Access | None]:
    """The operands of a term, read over the domain of a reader and the dimensions that the term folds."""
    term = terms[access.term]
    domain = access.index.domain
    read: list[Access | None] = []
    for operand in term.operands:
        folded = operand.index.domain[len(term.space) :]
        coordinates = (
            *access.index.coordinates,
            *(along(len(domain) + place, size) for place, size in enumerate(folded)),
        )
        opened = IndexMap((*domain, *folded), operand.index.domain, coordinates)
        read.append(terms.read(opened, operand))
    return read


def summands(terms: Terms, access: Access) -> tuple[Access, int] | None:
    """What a sum adds up, over the reader's domain and the dimensions that are folded (their number).

    Anything else is a sum of itself, over no dimension.
    """
    term = terms[access.term]
    if term.op != "sum":
        return access, 0
    (operand,) = opened(terms, access)
    return None if operand is None else (operand, term.reduced)


def widened(terms: Terms, access: Access, dim: int) -> Access | None:
    """An operand over one more dimension, of size 1, before ``dim``."""
    domain = access.index.domain
    wider = (*domain[:dim], 1, *domain[dim:])
    dims = [*range(dim), *range(dim + 1, len(wider))]
    index = IndexMap(wider, domain, tuple(along(place, wider[place]) for place in dims))
    return terms.read(index, access)


def wider(terms: Terms, x: Access, domain: Shape) -> Access:
    """An operand over more dimensions at the end of its domain, on which it does not depend."""
    shape = x.index.domain
    spread = IndexMap(domain, shape, tuple(along(dim, size) for dim, size in enumerate(shape)))
    read = terms.read(spread, x)
    if read is None:
        raise AssertionError("naming dimensions always composes")
    return read


def leading(terms: Terms, x: Access, count: int) -> Access:
    """An operand that does not depend on its last ``count`` dimensions, without them."""
    domain = x.index.domain
    kept = domain[: len(domain) - count]
    coordinates = (*(along(dim, size) for dim, size in enumerate(kept)), *[ZERO] * count)
    read = terms.read(IndexMap(kept, domain, coordinates), x)
    if read is None:
        raise AssertionError("leaving out dimensions always composes")
    return read


def next_to(first: IndexMap, second: IndexMap, dim: int) -> IndexMap | None:
    """One map that is ``first`` and then ``second`` along ``dim`` of the domain, if there is one."""
    size, rest = first.domain[dim], second.domain[dim]
    if first.codomain != second.codomain or not size:
        return None
    if _with(first.domain, dim, 0) != _with(second.domain, dim, 0):
        return None
    domain = _with(first.domain, dim, size + rest)
    coordinates: list[Expr] = []
    for one, other in zip(first.coordinates, second.coordinates, strict=True):
        joined = _continued(one, other, domain, dim, size)
        if joined is None:
            return None
        coordinates.append(joined)
    return IndexMap(domain, first.codomain, tuple(coordinates))


def _continued(one: Expr, other: Expr, domain: Shape, dim: int, size: int) -> Expr | None:
    """The expression that is ``one`` up to ``size`` along ``dim``, and ``other`` from there on."""
    windows = (0, size, one), (size, domain[dim] - size, other)
    for joined in _continuations(one, other.offset - one.offset, dim, size, domain[dim]):
        index = IndexMap(domain, (MOST,), (joined,))
        parts = [part(index, dim, start, length) for start, length, _ in windows]
        if all(
            found is not None and found.coordinates == (wanted,)
            for found, (_, _, wanted) in zip(parts, windows, strict=True)
        ):
            return joined
    return None


def _continuations(one: Expr, step: int, dim: int, size: int, whole: int) -> Iterator[Expr]:
    """What may go on where ``one`` ends, to be tried: a line, its longest digit, or all as it is.

    No digit is new: a thing repeated stays two pieces, as programs that work on each write it.
    """
    still = [term for term in one.terms if term.dim != dim]
    if step % size == 0:
        yield summed(one.offset, [*still, Term(dim, 1, whole, step // size)])
    longest = [term for term in one.terms if term.dim == dim and term.stride * term.size == size]
    for term in longest:
        if whole % term.stride == 0:
            longer = term._replace(size=whole // term.stride)
            yield summed(one.offset, [*(t for t in one.terms if t != term), longer])
    if not longest:
        yield one


def _with(shape: tuple[int, ...], dim: int, size: int) -> tuple[int, ...]:
    return (*shape[:dim], size, *shape[dim + 1 :])
