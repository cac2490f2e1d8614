"""The same computation on two neighbouring windows is one computation on both."""

from scalify.layout.digits import Expr, Term, summed
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
    if one.op != other.op or one.reduced or other.reduced or len(one.operands) != len(other.operands):
        return None
    if not one.operands or ":" in one.op:
        return None
    joined: list[Access] = []
    for own, its in zip(one.operands, other.operands, strict=True):
        left, right = terms.read(first.index, own), terms.read(second.index, its)
        both = neighbours(terms, left, right, dim) if left is not None and right is not None else None
        if both is None:
            return None
        joined.append(both)
    return terms.point(one.op, joined)


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
