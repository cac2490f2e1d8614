"""Sums: equal addends become multiples, opposite ones vanish, sums over neighbouring windows become one."""

from fractions import Fraction

from scalify.layout.digits import Expr, bounds, summed
from scalify.layout.maps import Shape
from scalify.normalize.lowering import Lowering
from scalify.normalize.products import factors, multiply, negate, product
from scalify.normalize.terms import INDEX_EXTENT, Access, number_of
from scalify.normalize.windows import neighbours

MOST_ADDENDS = 12


def add(low: Lowering, one: Access, other: Access) -> Access:
    """A sum of two operands, broadcast together."""
    domain = low.common(one, other)
    one, other = low.spread(one, domain), low.spread(other, domain)
    for attempt in (_number_sum, _masked_sum, _index_sum, _windows):
        result = attempt(low, one, other)
        if result is not None:
            return result
    return _collected(low, one, other, domain) or low.point("add", one, other)


def subtract(low: Lowering, one: Access, other: Access) -> Access:
    """A difference."""
    return add(low, one, negate(low, other))


def addends(low: Lowering, access: Access) -> list[Access]:
    """The addends of a sum, each read over the sum's domain."""
    found: list[Access] = []
    pending = [access]
    while pending:
        part = pending.pop()
        term = low.terms[part.term]
        inner = [low.terms.read(part.index, operand) for operand in term.operands] if term.op == "add" else []
        read = [operand for operand in inner if operand is not None]
        if read and len(read) == len(inner) and len(found) + len(pending) < MOST_ADDENDS:
            pending.extend(reversed(read))
        else:
            found.append(part)
    return found


def _collected(low: Lowering, one: Access, other: Access, domain: Shape) -> Access | None:
    """The sum with equal addends taken together; None where there are none and all stays as written."""
    collected: dict[Access, Fraction] = {}
    parts = [*addends(low, one), *addends(low, other)]
    for part in parts:
        rest = [factor for factor in factors(low, part) if number_of(low.terms, factor) is None]
        number = Fraction(1)
        for factor in factors(low, part):
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


def _index_sum(low: Lowering, one: Access, other: Access) -> Access | None:
    """A sum of indices is an index, where their digits agree and it is not negative."""
    left, right = _index(low, one), _index(low, other)
    if left is None or right is None:
        return None
    known = {(term.dim, term.stride, term.size) for term in left.terms}
    dims = {dim for dim, _, _ in known}
    if any(t.dim in dims and (t.dim, t.stride, t.size) not in known for t in right.terms):
        return None
    expr = summed(left.offset + right.offset, [*left.terms, *right.terms])
    low_end, high_end = bounds(expr)
    return low.terms.index(one.index.domain, expr) if low_end >= 0 and high_end < INDEX_EXTENT else None


def _index(low: Lowering, access: Access) -> Expr | None:
    """An index, or a whole number."""
    if low.terms[access.term].op == "index":
        return access.index.coordinates[1]
    value = number_of(low.terms, access)
    return None if value is None or value.denominator != 1 else Expr(int(value), ())


def _windows(low: Lowering, one: Access, other: Access) -> Access | None:
    """Sums over neighbouring windows of one thing are the sum over both."""
    first, second = low.terms[one.term], low.terms[other.term]
    if first.op != "sum" or second.op != "sum" or first.reduced != 1 or second.reduced != 1:
        return None
    if one.index != other.index or first.space != second.space:
        return None
    dim = len(first.space)
    (left,), (right,) = first.operands, second.operands
    joined = neighbours(low.terms, left, right, dim) or neighbours(low.terms, right, left, dim)
    if joined is None:
        return None
    return low.terms.read(one.index, low.terms.fold("sum", (joined,), 1))
