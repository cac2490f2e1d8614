"""Combinations over ranks: where a pending sum becomes a value, or a value is counted too often."""

from fractions import Fraction
from math import prod

from scalify.layout.digits import Expr, aligned
from scalify.layout.maps import then
from scalify.layout.ranks import together, without
from scalify.layout.views import Partial, RankDigits, View, independent_of, through
from scalify.normalize.terms import Access, Terms
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
    if together(idle, pending) is None:
        return None
    count = prod(size for _, size in idle)
    if kind not in ("sum", "max", "min") and count > 1:
        return None
    scale = view.scale * (count if kind == "sum" else 1)
    if kind != "sum" and view.scale != 1:
        return None
    return View(view.shape, view.window, view.index, Fraction(scale), Partial(kind, left) if left else None)


def owners(terms: Terms, access: Access) -> RankDigits | None:
    """The digits of the rank of which exactly one combination makes a condition 1, whatever the others are.

    None if the operand is not such a condition: an index of digits of the rank only, compared with a number
    (or with itself on other digits) for equality.
    """
    term = terms[access.term]
    if term.op != "eq":
        return None
    sides = [_index(terms, access, operand) for operand in term.operands]
    left, right = sides
    if left is None or right is None:
        return None
    minus = [part._replace(factor=-part.factor) for part in right.terms]
    gap = aligned(left.offset - right.offset, [*left.terms, *minus])
    if gap is None or not gap.terms or any(part.dim for part in gap.terms):
        return None
    digits = _digits_of_zero(gap)
    ranks = access.index.domain[0]
    return None if digits is None or any(ranks % (stride * size) for stride, size in digits) else digits


def _index(terms: Terms, access: Access, operand: Access) -> Expr | None:
    value = terms.finite_number(operand.term)
    if value is not None:
        return Expr(int(value), ()) if value.denominator == 1 else None
    if terms[operand.term].op != "index":
        return None
    read = then(access.index, operand.index)
    return None if read is None else read.coordinates[1]


def _digits_of_zero(gap: Expr) -> RankDigits | None:
    """The digits of an expression that is 0 for exactly one combination of them."""
    rest = -gap.offset
    parts = sorted(gap.terms, key=lambda part: abs(part.factor), reverse=True)
    reach = sum(abs(part.factor) * (part.size - 1) for part in parts)
    rest -= sum(part.factor * (part.size - 1) for part in parts if part.factor < 0)
    for part in parts:
        weight = abs(part.factor)
        reach -= weight * (part.size - 1)
        if reach >= weight:
            return None
        value = min(rest // weight, part.size - 1)
        if value < 0:
            return None
        rest -= value * weight
    return together(tuple((part.stride, part.size) for part in parts)) if rest == 0 else None


def owned(digits: RankDigits, reading: Reading) -> View | None:
    """What one rank of each group keeps and the others replace by 0 is a pending sum of it."""
    view = through(reading.view, reading.access)
    if view is None or view.window[0] != (0, view.shape[0]) or not independent_of(view.index, digits):
        return None
    if view.partial is None:
        return View(view.shape, view.window, view.index, view.scale, Partial("sum", digits))
    both = together(view.partial.digits, digits) if view.partial.kind == "sum" else None
    return (
        None if both is None else View(view.shape, view.window, view.index, view.scale, Partial("sum", both))
    )
