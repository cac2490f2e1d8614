"""Concatenations: views of pieces are views of parts of the whole, and parts that meet become one."""

from collections.abc import Mapping
from dataclasses import replace

from scalify.layout.digits import Expr, Term, digit, summed
from scalify.layout.maps import IndexMap, Shape, along, part, solve
from scalify.layout.views import View, through
from scalify.prove.rules.counterpart import Reading


def piece(reading: Reading, whole: Shape, axis: int, start: int) -> View | None:
    """A piece of a candidate's concatenation: the same view, of a window of the whole.

    Pieces along the rank are what some ranks hold, of which nothing can be pending.
    """
    view = through(reading.view, reading.access)
    if view is None or (axis == 0 and view.partial is not None):
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
    return None if index is None else replace(view, index=_placed(index, whole, axis, start))


def completed(view: View, given: IndexMap, whole: Shape, axis: int, start: int, beside: View) -> View | None:
    """The same of a piece that does not depend on all of its place: what is left open is as it is ``beside``.

    A key's part that all heads share is the same for every head, so also for those whose own part stands
    next to it. ``beside`` is another view of the same, of the neighbouring window.
    """
    dim = _apart(view, beside)
    if dim is None or beside.index.codomain != whole:
        return None
    size = view.index.domain[dim]
    still = (*view.index.domain[:dim], beside.index.domain[dim], *view.index.domain[dim + 1 :])
    if beside.index.domain != still:
        return None

    def free(at: int, stride: int, extent: int, found: Mapping[tuple[int, int, int], Expr]) -> Expr | None:
        place = beside.index.coordinates[at]
        if at == axis:
            return along(dim, size) if stride == 1 and extent == size else None
        return None if any(term.dim == dim for term in place.terms) else digit(place, stride, extent)

    index = solve([view.index], [given], free)
    return None if index is None else replace(view, index=_placed(index, whole, axis, start))


def _placed(index: IndexMap, whole: Shape, axis: int, start: int) -> IndexMap:
    """Places in a piece as places in the whole, in which it starts at ``start``."""
    moved = tuple(
        Expr(expr.offset + start, expr.terms) if dim == axis else expr
        for dim, expr in enumerate(index.coordinates)
    )
    return IndexMap(index.domain, whole, moved)


def _apart(first: View, second: View) -> int | None:
    """The dimension along which two windows meet, of views that could be one."""
    if first.scale != second.scale or first.partial != second.partial or first.shape != second.shape:
        return None
    windows = list(zip(first.window, second.window, strict=True))
    apart = [dim for dim, (one, other) in enumerate(windows) if one != other]
    if len(apart) != 1:
        return None
    (start, size), (after, rest) = windows[apart[0]]
    return apart[0] if start + size == after or after + rest == start else None


def united(first: View, second: View) -> View | None:
    """Two views of neighbouring windows as one, if one map explains both."""
    dim = _apart(first, second)
    if dim is None or first.index.codomain != second.index.codomain:
        return None
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
