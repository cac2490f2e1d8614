"""What orders a line: of functions that keep the order of their argument, only the argument counts.

The largest probabilities are those of the largest scores, and they are the probabilities of the largest
scores. So ``f(x)`` on a line is ordered like ``x`` where ``f`` is an exponential, a positive multiple or a
shift that is the same along the line.
"""

from collections.abc import Callable
from dataclasses import dataclass

from scalify.layout.digits import ZERO
from scalify.layout.maps import IndexMap, along
from scalify.normalize.exponentials import exp
from scalify.normalize.flat import addends, factors
from scalify.normalize.lowering import Lowering
from scalify.normalize.products import multiply
from scalify.normalize.sums import add
from scalify.normalize.terms import Access, combination, number_of

POSITIVE = frozenset({"exp", "sigmoid"})
INHERITS_SIGN = frozenset({"mul", "add", "reciprocal", "sqrt", "sum"})


@dataclass(frozen=True, slots=True)
class Ordered:
    """``key`` orders the lines; ``value`` gives back what stands at given places, from the key there.

    Keys are read over the lines' domain, whose last dimension is the line's.
    """

    key: Access
    value: Callable[[Access], Access]


def ordered(low: Lowering, x: Access) -> Ordered:
    """What orders the last dimension of ``x``, with functions that keep the order taken off."""
    last = len(x.index.domain) - 1
    own, beside = _parted(factors(low.terms, x), last)
    if not beside and len(own) == 1:
        return _argument(low, own[0], last)
    if len(own) != 1 or not all(is_positive(low, part) for part in beside):
        return Ordered(x, lambda key: key)
    inner = _argument(low, own[0], last)
    return Ordered(inner.key, lambda key: _scaled(low, inner.value(key), beside))


def _argument(low: Lowering, x: Access, last: int) -> Ordered:
    term = low.terms[x.term]
    if term.op == "exp":
        argument = low.terms.read(x.index, term.operands[0])
        if argument is not None:
            inner = ordered(low, argument)
            return Ordered(inner.key, lambda key: exp(low, inner.value(key)))
    own, beside = _parted(addends(low.terms, x), last)
    if beside and len(own) == 1:
        inner = ordered(low, own[0])
        return Ordered(inner.key, lambda key: _shifted(low, inner.value(key), beside))
    return Ordered(x, lambda key: key)


def _parted(parts: list[Access], last: int) -> tuple[list[Access], list[Access]]:
    """What differs along the line, and what is the same."""
    own = [part for part in parts if last in part.index.reads()]
    return own, [part for part in parts if part not in own]


def _scaled(low: Lowering, x: Access, parts: list[Access]) -> Access:
    for part in parts:
        x = multiply(low, x, _along(low, part, x))
    return x


def _shifted(low: Lowering, x: Access, parts: list[Access]) -> Access:
    for part in parts:
        x = add(low, x, _along(low, part, x))
    return x


def _along(low: Lowering, part: Access, like: Access) -> Access:
    """What is the same along a line, over lines of another length."""
    domain, target = part.index.domain, like.index.domain
    coordinates = (*(along(dim, size) for dim, size in enumerate(domain[:-1])), ZERO)
    read = low.terms.read(IndexMap(target, domain, coordinates), part)
    if read is None:
        raise AssertionError("leaving out a dimension always composes")
    return read


def is_positive(low: Lowering, x: Access) -> bool:
    """Whether a value is known to be more than 0 everywhere."""
    value = number_of(low.terms, x)
    if value is not None:
        return value > 0
    term = low.terms[x.term]
    if term.op in POSITIVE:
        return True
    over = combination(term.op)
    if term.op in INHERITS_SIGN or (over is not None and over[0] == "sum"):
        return all(is_positive(low, operand) for operand in term.operands)
    return False
