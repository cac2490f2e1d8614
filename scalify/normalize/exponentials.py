"""Exponentials and logarithms: ``exp`` of a sum is a product, ``log`` undoes ``exp``.

So the maximum that is subtracted before exponentials are taken becomes a factor, and cancels: all ways to
keep a softmax or a log-sum-exp in range are one term, and so are partial ones that are merged.
"""

from fractions import Fraction

from scalify.normalize.flat import addends, factors
from scalify.normalize.lowering import Lowering
from scalify.normalize.products import multiply, power, product
from scalify.normalize.sums import add
from scalify.normalize.terms import Access, number_of


def exp(low: Lowering, x: Access) -> Access:
    """The exponential: a product over addends; of what a mask excludes, 0."""
    parts = addends(low.terms, x)
    if len(parts) > 1:
        return _product(low, [exp(low, part) for part in parts])
    term = low.terms[x.term]
    if number_of(low.terms, x) == 0:
        return low.fraction(Fraction(1), x.index.domain)
    if term.op == "number:-inf":
        return low.fraction(Fraction(0), x.index.domain)
    undone = _undone(low, x)
    if undone is not None:
        return undone
    if term.op == "where" and low.terms[term.operands[2].term].op == "number:-inf":
        allowed, value = (low.terms.read(x.index, operand) for operand in term.operands[:2])
        if allowed is not None and value is not None:
            return multiply(low, exp(low, value), allowed)
    return low.point("exp", x)


def _undone(low: Lowering, x: Access) -> Access | None:
    """``exp(q * log(y))`` is ``y ** q``."""
    parts = factors(low.terms, x)
    logs = [part for part in parts if low.terms[part.term].op == "log"]
    numbers = [part for part in parts if number_of(low.terms, part) is not None]
    if len(logs) != 1 or len(numbers) + 1 != len(parts):
        return None
    base = low.terms.read(logs[0].index, low.terms[logs[0].term].operands[0])
    exponent = product(low, numbers, x.index.domain)
    return None if base is None else power(low, base, exponent)


def _product(low: Lowering, parts: list[Access]) -> Access:
    result = parts[0]
    for part in parts[1:]:
        result = multiply(low, result, part)
    return result


def log(low: Lowering, x: Access) -> Access:
    """The logarithm: exponential factors come out as addends."""
    parts = factors(low.terms, x)
    outside = [part for part in parts if low.terms[part.term].op == "exp"]
    inside = [part for part in parts if low.terms[part.term].op != "exp"]
    if not outside:
        return low.point("log", x)
    result: Access | None = None
    if inside:
        result = low.point("log", product(low, inside, x.index.domain))
    for part in outside:
        argument = low.terms.read(part.index, low.terms[part.term].operands[0])
        if argument is None:
            return low.point("log", x)
        result = argument if result is None else add(low, result, argument)
    return low.point("log", x) if result is None else result
