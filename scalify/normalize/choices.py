"""Truth values are 0 and 1: a choice against 0 is a product, a conjunction too.

Negations are pushed to comparisons. What a choice leaves out must be finite for this (over the reals it is);
minus infinity, as masks hold it, stays a choice.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from operator import eq, le, lt, ne

from scalify.layout.digits import aligned
from scalify.normalize.affine import affine, linear, written
from scalify.normalize.flat import factors
from scalify.normalize.indices import compared
from scalify.normalize.lowering import Lowering
from scalify.normalize.products import multiply, product
from scalify.normalize.terms import Access, number_of

OPPOSITE = {"lt": "le", "le": "lt"}
UNEQUAL = {"eq": "ne", "ne": "eq"}


def where(low: Lowering, condition: Access, chosen: Access, otherwise: Access) -> Access:
    """``chosen`` where the condition holds, else ``otherwise``."""
    decided = number_of(low.terms, condition)
    if decided is not None:
        domain = low.common(condition, chosen, otherwise)
        return low.spread(chosen if decided else otherwise, domain)
    if _is_excluded(low, chosen):
        return low.point("where", negated(low, condition), otherwise, chosen)
    if number_of(low.terms, otherwise) == 0:
        scalar = number_of(low.terms, chosen) is not None
        return multiply(low, condition, chosen) if scalar else multiply(low, chosen, condition)
    if number_of(low.terms, chosen) == 0 and not _is_excluded(low, otherwise):
        return where(low, negated(low, condition), otherwise, chosen)
    return low.point("where", condition, chosen, otherwise)


def _is_excluded(low: Lowering, access: Access) -> bool:
    return low.terms[access.term].op == "number:-inf"


def negated(low: Lowering, condition: Access) -> Access:
    """Not the condition."""
    term = low.terms[condition.term]
    decided = number_of(low.terms, condition)
    if decided is not None:
        return low.fraction(Fraction(0 if decided else 1), condition.index.domain)
    if term.op not in ("not", "or", *OPPOSITE, *UNEQUAL) or len(factors(low.terms, condition)) > 1:
        return low.point("not", condition)
    operands = [low.terms.read(condition.index, operand) for operand in term.operands]
    read = [operand for operand in operands if operand is not None]
    if len(read) == len(operands):
        if term.op == "not":
            return read[0]
        if term.op in OPPOSITE:
            return _compared(low, OPPOSITE[term.op], read[1], read[0])
        if term.op in UNEQUAL:
            return _compared(low, UNEQUAL[term.op], *read)
        if term.op == "or":
            return multiply(low, negated(low, read[0]), negated(low, read[1]))
    return low.point("not", condition)


def _compared(low: Lowering, op: str, one: Access, other: Access) -> Access:
    """A comparison, in the one way in which those of indices are written."""
    written = compared(low, op, one, other)
    if written is not None:
        return written
    return equal(low, one, other) if op == "eq" else low.point(op, one, other)


def of_truth(low: Lowering, op: str, one: Access, other: Access) -> Access | None:
    """``one op other`` (eq, ne, le, lt) of a truth value and a number; None where it is no such thing."""
    numbers = number_of(low.terms, one), number_of(low.terms, other)
    truth, number = (other, numbers[0]) if numbers[0] is not None else (one, numbers[1])
    if number is None or not is_truth(low, truth):
        return None
    no, yes = (
        _COMPARES[op](number, value) if truth is other else _COMPARES[op](value, number)
        for value in (Fraction(0), Fraction(1))
    )
    if no == yes:
        return low.fraction(Fraction(yes), truth.index.domain)
    return truth if yes else negated(low, truth)


def is_truth(low: Lowering, access: Access) -> bool:
    """Whether a value is 0 or 1 by what it is computed from: comparisons, and products of such."""
    parts = factors(low.terms, access)
    return all(low.terms[part.term].op in _TRUTHS or number_of(low.terms, part) in (0, 1) for part in parts)


_COMPARES: Mapping[str, Callable[[Fraction, Fraction], bool]] = {"eq": eq, "ne": ne, "le": le, "lt": lt}
_TRUTHS = frozenset({*_COMPARES, "not", "is_nonzero", "is_finite", "is_nan"})


def both(low: Lowering, one: Access, other: Access) -> Access:
    """Whether both conditions hold."""
    return multiply(low, one, other)


def equal(low: Lowering, one: Access, other: Access) -> Access:
    """Whether two values are equal; indices that are added on one side are subtracted on the other."""
    domain = low.common(one, other)
    one, other = low.spread(one, domain), low.spread(other, domain)
    moved = _moved(low, one, other) or _moved(low, other, one)
    return low.point("eq", *(moved or (one, other)))


def _moved(low: Lowering, left: Access, right: Access) -> tuple[Access, Access] | None:
    """``x - i == j`` as ``x == i + j``, for indices ``i`` and ``j``."""
    wanted = affine(low.terms, right)
    split = linear(low.terms, ((left, 1),)) if wanted is not None else None
    if wanted is None or split is None or len(split[0]) != 1:
        return None
    ((parts, number),) = split[0].items()
    minus = [term._replace(factor=-term.factor) for term in split[1].terms]
    expr = aligned(wanted.offset - split[1].offset, [*wanted.terms, *minus])
    index = written(low.terms, right.index.domain, expr) if expr is not None else None
    if index is None:
        return None
    value = product(low, [*parts, low.fraction(number, right.index.domain)], right.index.domain)
    return value, index
