"""Constant factors: a scale is part of a view, so it may be applied before or after anything linear."""

from dataclasses import replace
from fractions import Fraction

from scalify.layout.maps import IndexMap, solve
from scalify.layout.views import View, through
from scalify.prove.rules.counterpart import Reading


def scaled(reading: Reading, factor: Fraction) -> View | None:
    """A candidate that multiplies by a number is a view of the same value, of another scale."""
    view = through(reading.view, reading.access)
    if view is None or not factor or (view.partial is not None and view.partial.kind != "sum"):
        return None
    return replace(view, scale=view.scale * factor)


def unscaled(view: View, given: IndexMap, factor: Fraction) -> View | None:
    """A view of a value is a view of the baseline's multiple of that value, of another scale."""
    if not factor or (view.partial is not None and view.partial.kind != "sum"):
        return None
    index = solve([view.index], [given])
    return None if index is None else replace(view, index=index, scale=view.scale / factor)
