"""Sums: equal addends become multiples, opposite ones vanish, sums over neighbouring windows become one."""

from fractions import Fraction

from scalify.layout.digits import aligned
from scalify.normalize.affine import affine, written
from scalify.normalize.flat import addends, factors, goes_outside
from scalify.normalize.lowering import Lowering
from scalify.normalize.products import multiply, negate, product
from scalify.normalize.terms import Access, number_of
from scalify.normalize.windows import neighbours, summands, widened


def add(low: Lowering, one: Access, other: Access) -> Access:
    """A sum of two operands, broadcast together."""
    domain = low.common(one, other)
    one, other = low.spread(one, domain), low.spread(other, domain)
    for attempt in (_number_sum, _masked_sum, _affine_sum, _collected, _common, _windows, _window_of_many):
        result = attempt(low, one, other)
        if result is not None:
            return result
    return low.point("add", one, other)


def subtract(low: Lowering, one: Access, other: Access) -> Access:
    """A difference."""
    return add(low, one, negate(low, other))


def _collected(low: Lowering, one: Access, other: Access) -> Access | None:
    """The sum with equal addends taken together; None where there are none and all stays as written."""
    domain = one.index.domain
    collected: dict[Access, Fraction] = {}
    parts = [*addends(low.terms, one), *addends(low.terms, other)]
    for part in parts:
        rest = [factor for factor in factors(low.terms, part) if number_of(low.terms, factor) is None]
        number = Fraction(1)
        for factor in factors(low.terms, part):
            value = number_of(low.terms, factor)
            number *= 1 if value is None else value
        key = product(low, rest, domain)
        collected[key] = collected.get(key, Fraction(0)) + number
    if len(collected) == len(parts):
        return None
    result: Access | None = None
    for key, number in collected.items():
        if number:
            addend = multiply(low, key, low.fraction(number, domain))
            result = addend if result is None else low.point("add", result, addend)
    return low.fraction(Fraction(0), domain) if result is None else result


def _number_sum(low: Lowering, one: Access, other: Access) -> Access | None:
    first, second = number_of(low.terms, one), number_of(low.terms, other)
    if first is not None and second is not None:
        return low.fraction(first + second, one.index.domain)
    if second == 0:
        return one
    return other if first == 0 else None


def _masked_sum(low: Lowering, one: Access, other: Access) -> Access | None:
    """``x`` plus (0 where allowed, else minus infinity) is ``x`` where allowed, else minus infinity."""
    for x, mask in ((one, other), (other, one)):
        term = low.terms[mask.term]
        if term.op != "where" or number_of(low.terms, term.operands[1]) != 0:
            continue
        if low.terms[term.operands[2].term].op == "number:-inf":
            allowed = low.terms.read(mask.index, term.operands[0])
            if allowed is not None:
                return low.point("where", allowed, x, low.terms.special((low.ranks,), "-inf"))
    return None


def _affine_sum(low: Lowering, one: Access, other: Access) -> Access | None:
    """A sum of indices and whole numbers is an expression."""
    left, right = affine(low.terms, one), affine(low.terms, other)
    if left is None or right is None:
        return None
    expr = aligned(left.offset + right.offset, [*left.terms, *right.terms])
    return None if expr is None else written(low.terms, one.index.domain, expr)


def _common(low: Lowering, one: Access, other: Access) -> Access | None:
    """What two addends both divide by, or are a multiple of, is written outside of their sum."""
    first, second = factors(low.terms, one), factors(low.terms, other)
    shared = [part for part in first if part in second and goes_outside(low.terms, part)]
    if not shared:
        return None
    domain = one.index.domain
    rests = [product(low, _less(parts, shared), domain) for parts in (first, second)]
    return multiply(low, add(low, *rests), product(low, shared, domain))


def _less(parts: list[Access], gone: list[Access]) -> list[Access]:
    left = list(parts)
    for part in gone:
        left.remove(part)
    return left


def _windows(low: Lowering, one: Access, other: Access) -> Access | None:
    """Sums over neighbouring windows of one thing are the sum over both; elements are windows of one."""
    left, right = summands(low.terms, one), summands(low.terms, other)
    if one == other or left is None or right is None:
        return None
    (first, count), (second, other_count) = left, right
    total = max(count, other_count, 1)
    kept = len(one.index.domain)
    for dim in range(kept, kept + total):
        sides = [
            access if number == total else widened(low.terms, access, dim)
            for access, number in ((first, count), (second, other_count))
            if total - number <= 1
        ]
        if len(sides) < 2 or sides[0] is None or sides[1] is None:
            continue
        joined = neighbours(low.terms, sides[0], sides[1], dim) or neighbours(
            low.terms, sides[1], sides[0], dim
        )
        if joined is not None and dim in joined.index.reads():
            return low.terms.fold("sum", (joined,), total)
    return None


def _window_of_many(low: Lowering, one: Access, other: Access) -> Access | None:
    """A window that is no neighbour of the last one added may be one of those before it."""
    for parts, last in ((addends(low.terms, one), other), (addends(low.terms, other), one)):
        if len(parts) == 1:
            continue
        for place, part in enumerate(parts):
            joined = _windows(low, part, last)
            if joined is not None:
                for rest in (*parts[:place], *parts[place + 1 :]):
                    joined = add(low, joined, rest)
                return joined
    return None
