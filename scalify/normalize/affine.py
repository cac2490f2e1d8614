"""Sums of indices and whole numbers: expressions over the domain, not arithmetic.

Positions, masks and the first row of a shard are computed from ``arange`` and the rank. As expressions they
can be composed, compared and looked up in each other; written back, each expression has one form.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from scalify.layout.digits import Expr, Term, aligned, bounds
from scalify.layout.maps import Shape
from scalify.normalize.flat import addends, factors
from scalify.normalize.terms import INDEX_EXTENT, Access, Terms, number_of

Linear = tuple[Mapping[tuple[Access, ...], Fraction], Expr]
"""A sum: other addends (as their factors) with their multiples, and the indices in it as one expression."""


def affine(terms: Terms, access: Access) -> Expr | None:
    """A value as an expression over its domain, if it is nothing but indices and whole numbers."""
    op = terms[access.term].op
    if op == "index":
        return access.index.coordinates[1]
    if op not in ("add", "mul") and not op.startswith("number:"):
        return None
    split = linear(terms, ((access, 1),))
    return split[1] if split is not None and not split[0] else None


def linear(terms: Terms, parts: Sequence[tuple[Access, int]]) -> Linear | None:
    """A sum of multiples of ``parts``, taken apart; None where a multiple is not whole."""
    others: dict[tuple[Access, ...], Fraction] = {}
    offset = 0
    indices: list[Term] = []
    for access, sign in parts:
        for addend in addends(terms, access):
            number = Fraction(sign)
            rest: list[Access] = []
            for factor in factors(terms, addend):
                value = number_of(terms, factor)
                if value is None:
                    rest.append(factor)
                else:
                    number *= value
            expr = _index(terms, rest)
            if expr is None:
                others[tuple(rest)] = others.get(tuple(rest), Fraction(0)) + number
            elif number.denominator != 1:
                return None
            else:
                offset += int(number) * expr.offset
                indices.extend(term._replace(factor=term.factor * int(number)) for term in expr.terms)
    total = aligned(offset, [term for term in indices if term.factor])
    return None if total is None else ({key: value for key, value in others.items() if value}, total)


def _index(terms: Terms, rest: Sequence[Access]) -> Expr | None:
    """What a number multiplies, if that is an index, or nothing."""
    if not rest:
        return Expr(1, ())
    if len(rest) == 1 and terms[rest[0].term].op == "index":
        return rest[0].index.coordinates[1]
    return None


def written(terms: Terms, domain: Shape, expr: Expr) -> Access | None:
    """An expression as a term: an index, less a number where it can be negative."""
    least, most = bounds(expr)
    below = min(least, 0)
    if most - below >= INDEX_EXTENT:
        return None
    if not expr.terms:
        return terms.number(domain, Fraction(expr.offset))
    index = terms.index(domain, Expr(expr.offset - below, expr.terms))
    if not below:
        return index
    return terms.point("add", (index, terms.number(domain, Fraction(below))))
