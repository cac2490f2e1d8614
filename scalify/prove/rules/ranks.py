"""Combinations over ranks: where a pending sum becomes a value, or a value is counted too often."""

from fractions import Fraction
from math import prod

from scalify.layout.ranks import without
from scalify.layout.views import Partial, RankDigits, View, independent_of, through
from scalify.prove.rules.counterpart import Reading


def over_ranks(kind: str, digits: RankDigits, reading: Reading) -> View | None:
    """The view that a combination over ``digits`` is of what its operand is a view of.

    Digits that are pending are settled; those on which nothing depends multiply a sum by their number;
    those on which the place depends combine different elements, and nothing follows.
    """
    view = through(reading.view, reading.access)
    if view is None or view.window[0] != (0, view.shape[0]):
        return None
    pending = view.partial.digits if view.partial is not None else ()
    if view.partial is not None and view.partial.kind != kind:
        return None
    idle, left = without(digits, pending), without(pending, digits)
    if idle is None or left is None or not independent_of(view.index, idle):
        return None
    count = prod(size for _, size in idle)
    if kind not in ("sum", "max", "min") and count > 1:
        return None
    scale = view.scale * (count if kind == "sum" else 1)
    if kind != "sum" and view.scale != 1:
        return None
    return View(view.shape, view.window, view.index, Fraction(scale), Partial(kind, left) if left else None)
