"""Sums: equal addends become multiples, opposite ones vanish, sums over neighbouring windows become one."""

from collections.abc import Iterator
from fractions import Fraction

from scalify.layout.digits import aligned
from scalify.normalize.affine import affine, written
from scalify.normalize.flat import addends, factors, goes_outside
from scalify.normalize.lowering import Lowering
from scalify.normalize.products import multiply, negate, product
from scalify.normalize.terms import Access, number_of
from scalify.normalize.windows import neighbours, summands, widened, wider

Summands = tuple[Access, int]
"""What a sum adds up, and over how many dimensions."""

MOST_PLACES = 4


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
    if one == other:
        return None
    for left, right in _opened(low, one, other):
        joined = _over_both(low, left, right, len(one.index.domain))
        if joined is not None:
            return joined
    return None


def _over_both(low: Lowering, left: Summands, right: Summands, kept: int) -> Access | None:
    """The sum over what is added up on both sides, if one goes on where the other ends."""
    (first, count), (second, other_count) = left, right
    total = max(count, other_count, 1)
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
    return _side_by_side(low, left, right, kept)


def _side_by_side(low: Lowering, left: Summands, right: Summands, kept: int) -> Access | None:
    """Sums over the same of two elements, as of two texts: the sum over both of them as well."""
    (first, count), (second, other_count) = left, right
    if not count or count != other_count:
        return None
    one, other = widened(low.terms, first, kept), widened(low.terms, second, kept)
    if one is None or other is None:
        return None
    joined = neighbours(low.terms, one, other, kept) or neighbours(low.terms, other, one, kept)
    if joined is None or kept not in joined.index.reads():
        return None
    return low.terms.fold("sum", (joined,), count + 1)


def _opened(low: Lowering, one: Access, other: Access) -> Iterator[tuple[Summands, Summands]]:
    """What both add up, as it stands; then with what stands outside of a sum brought back to a place inside.

    A window of one element is divided outside of its sum, a larger one inside.
    """
    left, right = summands(low.terms, one), summands(low.terms, other)
    if left is not None and right is not None:
        yield left, right
    if not _is_divided(low, one) and not _is_divided(low, other):
        return
    for place in range(MOST_PLACES):
        left, right = _divided_inside(low, one, place), _divided_inside(low, other, place)
        if left is not None and right is not None:
            yield left, right


def _is_divided(low: Lowering, x: Access) -> bool:
    """Whether a value is a sum, times what is written outside of sums."""
    parts = factors(low.terms, x)
    sums = [part for part in parts if low.terms[part.term].op == "sum"]
    return len(sums) == 1 < len(parts) and all(
        goes_outside(low.terms, part) for part in parts if part not in sums
    )


def _divided_inside(low: Lowering, x: Access, place: int) -> Summands | None:
    """What a sum adds up, times what stands outside of it, as a factor at ``place``."""
    if not _is_divided(low, x):
        return summands(low.terms, x)
    parts = factors(low.terms, x)
    (total,) = (part for part in parts if low.terms[part.term].op == "sum")
    opened = summands(low.terms, total)
    if opened is None:
        return None
    inner, count = opened
    domain = inner.index.domain
    inside = factors(low.terms, inner)
    if place > len(inside):
        return None
    brought = [wider(low.terms, part, domain) for part in parts if part is not total]
    return product(low, [*inside[:place], *brought, *inside[place:]], domain), count


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
