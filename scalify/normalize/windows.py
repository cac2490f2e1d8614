"""The same computation on two neighbouring windows is one computation on both."""

from scalify.layout.digits import ZERO, Expr, Term, summed
from scalify.layout.maps import IndexMap, along, then
from scalify.normalize.terms import Access, Terms


def neighbours(terms: Terms, first: Access, second: Access, dim: int) -> Access | None:
    """What reads as ``first`` and then, further along ``dim``, as ``second``; None if nothing is found.

    Their domains agree but for ``dim``. Point-wise operations and folds are looked into.
    """
    if first.term == second.term:
        index = next_to(first.index, second.index, dim)
        if index is not None:
            return Access(index, first.term)
    one, other = terms[first.term], terms[second.term]
    if one.op != other.op or one.reduced != other.reduced or not one.operands or ":" in one.op:
        return None
    joined: list[Access] = []
    for left, right in zip(_opened(terms, first), _opened(terms, second), strict=True):
        both = neighbours(terms, left, right, dim) if left is not None and right is not None else None
        if both is None:
            return None
        joined.append(both)
    return terms.fold(one.op, joined, one.reduced)


def _opened(terms: Terms, access: Access) -> list[Access | None]:
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
    (operand,) = _opened(terms, access)
    return None if operand is None else (operand, term.reduced)


def widened(terms: Terms, access: Access, dim: int) -> Access | None:
    """An operand over one more dimension, of size 1, before ``dim``."""
    domain = access.index.domain
    wider = (*domain[:dim], 1, *domain[dim:])
    dims = [*range(dim), *range(dim + 1, len(wider))]
    index = IndexMap(wider, domain, tuple(along(place, wider[place]) for place in dims))
    return terms.read(index, access)


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
    if first.codomain != second.codomain:
        return None
    if _with(first.domain, dim, 0) != _with(second.domain, dim, 0):
        return None
    domain = _with(first.domain, dim, size + rest)
    coordinates: list[Expr] = []
    for one, other in zip(first.coordinates, second.coordinates, strict=True):
        factor, odd = divmod(other.offset - one.offset, size)
        if odd:
            return None
        still = [term for term in one.terms if term.dim != dim]
        coordinates.append(summed(one.offset, [*still, Term(dim, 1, size + rest, factor)]))
    index = IndexMap(domain, first.codomain, tuple(coordinates))
    if part(index, dim, 0, size) != first or part(index, dim, size, rest) != second:
        return None
    return index


def part(index: IndexMap, dim: int, start: int, size: int) -> IndexMap | None:
    """A window of the domain along ``dim``."""
    sizes = _with(index.domain, dim, size)
    embed = tuple(along(d, n, offset=start if d == dim else 0) for d, n in enumerate(sizes))
    return then(IndexMap(sizes, index.domain, embed), index)


def _with(shape: tuple[int, ...], dim: int, size: int) -> tuple[int, ...]:
    return (*shape[:dim], size, *shape[dim + 1 :])
