"""Exactly one row is hit: what a look-up adds to every row alike, it adds once.

A look-up is a sum over rows of (index == row) * value. Where the index is in range, and rows run over all of
it, on one rank or on several together, exactly one row is hit; so a part of the value that is the same for
all rows leaves the sum. ``sum over v of (t == v) * (x[v] - m)`` is ``x[t] - m``.
"""

from collections.abc import Sequence

from scalify.layout.digits import Expr
from scalify.layout.ranks import without
from scalify.layout.views import RankDigits, uses_rank_digits
from scalify.normalize.flat import addends, factors
from scalify.normalize.lowering import Lowering
from scalify.normalize.products import multiply
from scalify.normalize.terms import Access
from scalify.normalize.windows import leading, summands

IN_RANGE_ASSUMED = "indices of look-ups are in range, so exactly one row is hit"


def shared_by_hits(low: Lowering, x: Access, digits: RankDigits) -> tuple[Access, Access] | None:
    """A sum over rows (a rank's, to be summed over ``digits`` yet) without what all rows share, and that.

    None unless ``x`` is such a sum and its rows share something.
    """
    opened = summands(low.terms, x)
    if opened is None or opened[1] != 1:
        return None
    inner, count = opened
    dim = len(inner.index.domain) - 1
    parts = factors(low.terms, inner)
    hits = [part for part in parts if _is_certain(low, part, dim, digits)]
    sums = [part for part in parts if low.terms[part.term].op == "add"]
    if len(hits) != 1 or len(sums) != 1 or len(parts) != 2:
        return None
    shared, own = _parted(addends(low.terms, sums[0]), dim, digits)
    if not shared or not own:
        return None
    low.assumed.add(IN_RANGE_ASSUMED)
    rest = low.terms.fold("sum", (multiply(low, _total(low, own), hits[0]),), count)
    return rest, leading(low.terms, _total(low, shared), count)


def _parted(parts: Sequence[Access], dim: int, digits: RankDigits) -> tuple[list[Access], list[Access]]:
    """What is the same for all rows on all ranks, and what is not."""
    shared = [
        part
        for part in parts
        if dim not in part.index.reads()
        and not any(uses_rank_digits(expr, digits) for expr in part.index.coordinates)
    ]
    return shared, [part for part in parts if part not in shared]


def _total(low: Lowering, parts: Sequence[Access]) -> Access:
    total = parts[0]
    for part in parts[1:]:
        total = low.point("add", total, part)
    return total


def _is_certain(low: Lowering, hit: Access, dim: int, digits: RankDigits) -> bool:
    """Whether exactly one row along ``dim``, on one of the ranks that differ in ``digits``, is hit."""
    term = low.terms[hit.term]
    if term.op != "eq":
        return False
    sides = [low.terms.read(hit.index, operand) for operand in term.operands]
    for position, row in (sides, sides[::-1]):
        if position is None or row is None or low.terms[row.term].op != "index":
            continue
        if _parted((position,), dim, digits)[1]:
            continue
        rows = _covered(row.index.coordinates[1], hit.index.domain, dim, digits)
        if rows is not None and (position.term, rows) in low.terms.in_range:
            return True
    return False


def _covered(expr: Expr, domain: tuple[int, ...], dim: int, digits: RankDigits) -> int | None:
    """How many rows an expression runs over, each once, along ``dim`` and ``digits``; from 0 on."""
    weight = 1
    used: list[tuple[int, int]] = []
    for term in sorted(expr.terms, key=lambda term: term.factor):
        if term.factor != weight or term.dim not in (0, dim):
            return None
        if term.dim == dim and (term.stride, term.size) != (1, domain[dim]):
            return None
        used += [(term.stride, term.size)] if term.dim == 0 else []
        weight *= term.size
    whole = without(digits, tuple(used)) == () and without(tuple(used), digits) == ()
    along = any(term.dim == dim for term in expr.terms) or domain[dim] == 1
    return weight if whole and along and not expr.offset else None
