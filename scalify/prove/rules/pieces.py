"""Concatenations: views of pieces are views of parts of the whole, and parts that meet become one."""

from dataclasses import replace

from scalify.layout.digits import Expr, Term, summed
from scalify.layout.maps import IndexMap, Shape, part, solve
from scalify.layout.views import View, through
from scalify.prove.rules.counterpart import Reading


def piece(reading: Reading, whole: Shape, axis: int, start: int) -> View | None:
    """A piece of a candidate's concatenation: the same view, of a window of the whole."""
    view = through(reading.view, reading.access)
    if view is None:
        return None
    window = tuple(
        (first + start if dim == axis else first, size) for dim, (first, size) in enumerate(view.window)
    )
    return View(whole, window, view.index, view.scale, view.partial)


def assembled(view: View, given: IndexMap, whole: Shape, axis: int, start: int) -> View | None:
    """A view of what the baseline concatenates is a view of the concatenation.

    ``given`` is the map through which the piece at ``start`` along ``axis`` reads the viewed value.
    """
    index = solve([view.index], [given])
    if index is None:
        return None
    moved = tuple(
        Expr(expr.offset + start, expr.terms) if dim == axis else expr
        for dim, expr in enumerate(index.coordinates)
    )
    return replace(view, index=IndexMap(index.domain, whole, moved))


def united(first: View, second: View) -> View | None:
    """Two views of neighbouring windows as one, if one map explains both."""
    if first.scale != second.scale or first.partial != second.partial or first.shape != second.shape:
        return None
    if first.index.codomain != second.index.codomain:
        return None
    apart = [
        dim for dim, pair in enumerate(zip(first.window, second.window, strict=True)) if pair[0] != pair[1]
    ]
    if len(apart) != 1:
        return None
    (dim,) = apart
    (start, size), (after, rest) = first.window[dim], second.window[dim]
    if start + size != after:
        return None
    domain = (*first.index.domain[:dim], size + rest, *first.index.domain[dim + 1 :])
    coordinates: list[Expr] = []
    for one, other in zip(first.index.coordinates, second.index.coordinates, strict=True):
        factor, odd = divmod(other.offset - one.offset, size)
        if odd:
            return None
        still = [term for term in one.terms if term.dim != dim]
        coordinates.append(summed(one.offset, [*still, Term(dim, 1, size + rest, factor)]))
    index = IndexMap(domain, first.index.codomain, tuple(coordinates))
    if part(index, dim, 0, size) != first.index or part(index, dim, size, rest) != second.index:
        return None
    window = (*first.window[:dim], (start, size + rest), *first.window[dim + 1 :])
    return View(first.shape, window, index, first.scale, first.partial)
