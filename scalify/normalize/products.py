"""Products: flat, with numbers gathered at the end and inverses cancelled.

A quotient is a product with a reciprocal. The reciprocal of a product is the product of the reciprocals, that
of ``exp(x)`` is ``exp(-x)``. So a factor that is divided out again vanishes wherever it stands: the maximum
that softmaxes subtract, the sum by which weights are divided before or after they are used. This holds over
the reals where nothing divides by zero.
"""

from collections.abc import Sequence
from fractions import Fraction

from scalify.layout.digits import ZERO, scaled
from scalify.layout.maps import IndexMap, Shape, along
from scalify.normalize.affine import affine, written
from scalify.normalize.flat import MOST_PARTS, addends, factors
from scalify.normalize.lowering import Lowering
from scalify.normalize.terms import Access, number_of


def multiply(low: Lowering, one: Access, other: Access) -> Access:
    """A product of two operands, broadcast together."""
    domain = low.common(one, other)
    one, other = low.spread(one, domain), low.spread(other, domain)
    multiple = _multiple(low, one, other) or _multiple(low, other, one)
    if multiple is not None:
        return multiple
    first, second = factors(low.terms, one), factors(low.terms, other)
    if not _needs_rewriting(low, first, second):
        return low.point("mul", one, other)
    return product(low, [*first, *second], domain)


def _needs_rewriting(low: Lowering, first: Sequence[Access], second: Sequence[Access]) -> bool:
    """Whether anything cancels, or a number stands elsewhere than at the end of a flat product."""
    if len(second) == 1 and number_of(low.terms, second[0]) not in (None, 0, 1):
        return any(number_of(low.terms, factor) is not None for factor in first)
    if any(number_of(low.terms, factor) is not None for factor in (*first, *second)):
        return True
    if any(_starts_negative(low, factor) for factor in (*first, *second)):
        return True
    return any(
        inverse(low, one) == other or one == inverse(low, other) or _is_twice_a_root(low, one, other)
        for one in first
        for other in second
    )


def _starts_negative(low: Lowering, x: Access) -> bool:
    """Whether a value is a sum whose first addend is a negative multiple: as a factor it is turned round."""
    if low.terms[x.term].op != "add":
        return False
    numbers = (number_of(low.terms, factor) for factor in factors(low.terms, addends(low.terms, x)[0]))
    return any(number is not None and number < 0 for number in numbers)


def _is_twice_a_root(low: Lowering, one: Access, other: Access) -> bool:
    return one == other and low.terms[one.term].op == "sqrt"


def product(low: Lowering, parts: Sequence[Access], domain: Shape) -> Access:
    """The product of factors that are read over ``domain``; of none, the number 1."""
    number = Fraction(1)
    kept: list[Access] = []
    left = list(reversed(parts))
    while left:
        part = left.pop()
        value = number_of(low.terms, part)
        if value is not None:
            number *= value
            continue
        if part in kept and low.terms[part.term].op == "sqrt":
            kept.remove(part)
            under = low.terms.read(part.index, low.terms[part.term].operands[0])
            left.extend(factors(low.terms, under) if under is not None else (part, part))
            continue
        opposite = next((k for k in kept if inverse(low, k) == part or k == inverse(low, part)), None)
        if opposite is not None:
            kept.remove(opposite)
        else:
            kept.append(part)
    if not kept or not number:
        return low.fraction(number, domain)
    if len(kept) > 1:
        turned = [part for part in kept if _starts_negative(low, part)]
        number *= (-1) ** len(turned)
        kept = [negate(low, part) if part in turned else part for part in kept]
    result = kept[0]
    for part in kept[1:]:
        result = low.point("mul", result, part)
    return result if number == 1 else low.point("mul", result, low.fraction(number, domain))


def inverse(low: Lowering, access: Access) -> Access | None:
    """What cancels a factor: the argument of a reciprocal, ``exp(-x)`` of ``exp(x)``; None if not known."""
    term = low.terms[access.term]
    if term.op == "reciprocal":
        return low.terms.read(access.index, term.operands[0])
    if term.op == "exp":
        argument = low.terms.read(access.index, term.operands[0])
        return None if argument is None else low.point("exp", negate(low, argument))
    return None


def negate(low: Lowering, x: Access) -> Access:
    """Minus ``x``; of a sum, the sum of the opposites, so that they meet what they cancel.

    A part of a sum is a part of its opposite, so that the opposite of that is a part of the sum again.
    """
    parts = addends(low.terms, x)
    whole = _whole(low, x) if low.terms[x.term].op == "add" else None
    if whole is not None and whole.index.domain != x.index.domain:
        reader = IndexMap(x.index.domain, whole.index.domain, x.index.coordinates)
        part = low.terms.read(reader, negate(low, whole))
        if part is not None:
            return part
    if len(parts) > 1:
        total = negate(low, parts[0])
        for part in parts[1:]:
            total = low.point("add", total, negate(low, part))
        return total
    return multiply(low, x, low.fraction(Fraction(-1), (low.ranks,)))


def _whole(low: Lowering, x: Access) -> Access | None:
    """All of what is read, where it is on as many ranks as there are, or the same on all."""
    space = low.terms[x.term].space
    if space[0] not in (1, low.ranks):
        return None
    domain = low.ranks, *space[1:]
    coordinates = (
        along(0, low.ranks) if space[0] > 1 else ZERO,
        *(along(dim, size) for dim, size in enumerate(space) if dim),
    )
    return Access(IndexMap(domain, space, coordinates), x.term)


def reciprocal(low: Lowering, x: Access) -> Access:
    """One over ``x``, factor by factor."""
    parts = factors(low.terms, x)
    if len(parts) > 1:
        return product(low, [reciprocal(low, part) for part in parts], x.index.domain)
    value = number_of(low.terms, x)
    if value:
        return low.fraction(1 / value, x.index.domain)
    return inverse(low, x) or low.point("reciprocal", x)


def divide(low: Lowering, one: Access, other: Access) -> Access:
    """A quotient."""
    return multiply(low, one, reciprocal(low, other))


def power(low: Lowering, x: Access, exponent: Access) -> Access:
    """A power; small whole exponents are products, halves are roots."""
    value = number_of(low.terms, exponent)
    if value is None:
        return low.point("pow", x, exponent)
    if value < 0:
        return reciprocal(low, power(low, x, low.fraction(-value, exponent.index.domain)))
    if value == Fraction(1, 2):
        return low.point("sqrt", x)
    if value.denominator != 1 or not 1 <= value <= MOST_PARTS:
        return low.point("pow", x, exponent)
    result = x
    for _ in range(int(value) - 1):
        result = multiply(low, result, x)
    return result


def _multiple(low: Lowering, one: Access, other: Access) -> Access | None:
    """A whole multiple of an index."""
    factor = number_of(low.terms, other)
    if factor is None or factor.denominator != 1:
        return None
    expr = affine(low.terms, one)
    return None if expr is None else written(low.terms, one.index.domain, scaled(expr, int(factor)))
