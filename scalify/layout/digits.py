"""Integer expressions over digits of an index: an offset and a sum of coefficients times digits.

A digit is ``x[dim] // stride % size``: a dimension read in mixed radix, which is what reshapes do to it.
Every function here is exact or answers None; None means "not expressible", never "different".

Terms of an expression are sorted by dimension and stride; two digits that together form a longer digit
with the same slope are one term. Equal expressions are therefore equal functions.
"""

import itertools
from collections.abc import Iterable
from typing import NamedTuple


class Term(NamedTuple):
    """``factor * (x[dim] // stride % size)``; size is at least 2, factor is not 0."""

    dim: int
    stride: int
    size: int
    factor: int


class Expr(NamedTuple):
    """``offset + sum(terms)``."""

    offset: int
    terms: tuple[Term, ...]


ZERO = Expr(0, ())


def summed(offset: int, terms: Iterable[Term]) -> Expr:
    """The normal form of a sum in which no digit occurs in two terms of unlike extent that overlap.

    Terms over the very same digit add up; neighbours with the same slope join.
    """
    factors: dict[tuple[int, int, int], int] = {}
    for dim, stride, size, factor in terms:
        if size > 1:
            factors[dim, stride, size] = factors.get((dim, stride, size), 0) + factor
    joined: list[Term] = []
    for (dim, stride, size), factor in sorted(factors.items()):
        if factor == 0:
            continue
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.dim == dim
            and last.stride * last.size == stride
            and last.factor * last.size == factor
        ):
            joined[-1] = Term(dim, last.stride, last.size * size, last.factor)
        else:
            joined.append(Term(dim, stride, size, factor))
    return Expr(offset, tuple(joined))


def bounds(expr: Expr) -> tuple[int, int]:
    """The least and the greatest value."""
    low = high = expr.offset
    for term in expr.terms:
        extent = term.factor * (term.size - 1)
        if extent < 0:
            low += extent
        else:
            high += extent
    return low, high


def scaled(expr: Expr, factor: int) -> Expr:
    """``factor`` times the expression."""
    if factor == 1:
        return expr
    return summed(expr.offset * factor, [t._replace(factor=t.factor * factor) for t in expr.terms])


def divided(expr: Expr, divisor: int) -> Expr | None:
    """The expression divided by what divides every part of it."""
    if divisor == 1:
        return expr
    if expr.offset % divisor or any(term.factor % divisor for term in expr.terms):
        return None
    return Expr(expr.offset // divisor, tuple(t._replace(factor=t.factor // divisor) for t in expr.terms))


def split(expr: Expr, width: int) -> tuple[Expr, Expr] | None:
    """Quotient and remainder by ``width``, as expressions: no carry may reach from one into the other.

    A digit that lies across the boundary is cut in two where its radix allows it.
    """
    low, high = bounds(expr)
    if low >= 0 and high < width:
        return ZERO, expr
    above: list[Term] = []
    below: list[Term] = []
    for term in expr.terms:
        if term.factor % width == 0:
            above.append(term)
        elif abs(term.factor) * (term.size - 1) < width:
            below.append(term)
        else:
            inner = width // abs(term.factor) if width % abs(term.factor) == 0 else 0
            if not inner or term.size % inner:
                return None
            sign = 1 if term.factor > 0 else -1
            below.append(Term(term.dim, term.stride, inner, term.factor))
            above.append(Term(term.dim, term.stride * inner, term.size // inner, sign * width))
    least, greatest = bounds(Expr(expr.offset, tuple(below)))
    carried = least // width
    if greatest - carried * width >= width:
        return None
    quotient = summed(carried, [t._replace(factor=t.factor // width) for t in above])
    return quotient, summed(expr.offset - carried * width, below)


def digit(expr: Expr, stride: int, size: int) -> Expr | None:
    """``expr // stride % size`` as an expression."""
    if stride > 1:
        parts = split(expr, stride)
        if parts is None:
            return None
        expr = parts[0]
    parts = split(expr, size)
    return None if parts is None else parts[1]


def substituted(expr: Expr, values: tuple[Expr, ...], domain: tuple[int, ...]) -> Expr | None:
    """The expression with each dimension ``d`` replaced by ``values[d]``, expressions over ``domain``."""
    if not expr.terms:
        return expr
    if len(expr.terms) == 1:
        ((dim, stride, size, factor),) = expr.terms
        renamed = _whole_dimension(values[dim], domain)
        if renamed is not None and stride * size <= domain[renamed]:
            return Expr(expr.offset, (Term(renamed, stride, size, factor),))
    offset = expr.offset
    terms: list[Term] = []
    for dim, stride, size, factor in expr.terms:
        renamed = _whole_dimension(values[dim], domain)
        if renamed is not None:
            terms.append(Term(renamed, stride, min(size, -(-domain[renamed] // stride)), factor))
            continue
        value = digit(values[dim], stride, size)
        if value is None:
            return None
        offset += factor * value.offset
        terms.extend(Term(d, s, n, f * factor) for d, s, n, f in value.terms)
    return aligned(offset, terms) or summed(offset, terms)


def _whole_dimension(expr: Expr, domain: tuple[int, ...]) -> int | None:
    """The dimension whose index the expression is, as it stands."""
    if expr.offset or len(expr.terms) != 1:
        return None
    dim, stride, size, factor = expr.terms[0]
    return dim if stride == factor == 1 and size == domain[dim] else None


def aligned(offset: int, terms: list[Term]) -> Expr | None:
    """The normal form of any sum of terms: digits that overlap are first cut to common digits."""
    if len({(t.dim, t.stride, t.size) for t in terms}) == len(terms) and not _overlapping(terms):
        return summed(offset, terms)
    cuts: dict[int, set[int]] = {}
    for term in terms:
        cuts.setdefault(term.dim, set()).update((term.stride, term.stride * term.size))
    pieces: list[Term] = []
    for term in terms:
        inside = sorted(c for c in cuts[term.dim] if term.stride <= c <= term.stride * term.size)
        for low, high in itertools.pairwise(inside):
            if low % term.stride or high % low:
                return None
            pieces.append(Term(term.dim, low, high // low, term.factor * (low // term.stride)))
    return summed(offset, pieces)


def _overlapping(terms: list[Term]) -> bool:
    ordered = sorted(terms)
    return any(
        one.dim == other.dim and one.stride * one.size > other.stride
        for one, other in itertools.pairwise(ordered)
    )
