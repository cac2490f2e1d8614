"""Look-ups of one row among all, and of one row among those that a rank holds.

A look-up is a sum over rows of (index == row) * value of the row. A rank that holds a part of the rows looks
up a row of its own even where the index is not among them, and then discards what it found:

    inside * sum over v of ((index - first) * inside == v) * value[v],   inside: 0 <= index - first < rows

Where ``inside`` is 1, that is the sum over v of (index - first == v) * value[v]. Where it is 0, no ``v`` of
the part equals ``index - first``, and that sum is 0 too: so ``inside`` may be left out, in both places. The
same holds of a row by itself, to which gradients of look-ups are added.
"""

from collections.abc import Sequence

from scalify.layout.digits import aligned, bounds
from scalify.layout.maps import IndexMap, along
from scalify.normalize.affine import Linear, linear
from scalify.normalize.choices import equal
from scalify.normalize.flat import factors
from scalify.normalize.lowering import Lowering
from scalify.normalize.products import multiply, product
from scalify.normalize.terms import Access
from scalify.normalize.windows import leading, wider

COMPARISONS = {"le": 0, "lt": 1}
"""By how much the right side exceeds the left at least."""


def settled(low: Lowering, x: Access) -> Access:
    """The same product, with conditions left out that a look-up among its factors implies."""
    parts = factors(low.terms, x)
    for place, part in enumerate(parts):
        written = _settled_write(low, parts, place) if low.terms[part.term].op == "eq" else None
        if written is not None:
            return written
        inside = _over_rows(low, part)
        found = None if inside is None else _settled(low, inside, [*parts[:place], *parts[place + 1 :]])
        if found is not None:
            return found
    return x


def _settled_write(low: Lowering, parts: Sequence[Access], place: int) -> Access | None:
    """The same of a row that asks whether it is hit: ``(position * conditions == row) * conditions``."""
    hit, rest = parts[place], [*parts[:place], *parts[place + 1 :]]
    sides = [low.terms.read(hit.index, operand) for operand in low.terms[hit.term].operands]
    for position, row in (sides, sides[::-1]):
        if position is None or row is None or low.terms[row.term].op != "index":
            continue
        inner = factors(low.terms, position)
        conditions = [part for part in inner if low.terms[part.term].op in COMPARISONS]
        if not all(condition in rest for condition in conditions):
            continue
        domain = position.index.domain
        plain = product(low, [part for part in inner if part not in conditions], domain)
        rows = bounds(row.index.coordinates[1])[1] + 1
        implied = [part for part in rest if _is_implied(low, part, plain, rows)]
        if implied:
            changed = [
                equal(low, plain, row) if part is hit else part for part in parts if part not in implied
            ]
            return product(low, changed, hit.index.domain)
    return None


def _over_rows(low: Lowering, part: Access) -> Access | None:
    """What a sum adds up over rows, the last dimension; of one row alone it is no sum."""
    term = low.terms[part.term]
    if term.op == "eq":
        return wider(low.terms, part, (*part.index.domain, 1))
    if term.op != "sum" or term.reduced != 1:
        return None
    (operand,) = term.operands
    rows = operand.index.domain[-1]
    domain = (*part.index.domain, rows)
    coordinates = (*part.index.coordinates, along(len(domain) - 1, rows))
    return low.terms.read(IndexMap(domain, operand.index.domain, coordinates), operand)


def _settled(low: Lowering, inside: Access, rest: Sequence[Access]) -> Access | None:
    """``inside`` is summed over rows, ``rest`` are the factors beside the sum."""
    domain = inside.index.domain
    rows, dim = domain[-1], len(domain) - 1
    inner = factors(low.terms, inside)
    beside = [wider(low.terms, factor, domain) for factor in rest]
    for hit in inner:
        plain = _without_conditions(low, hit, beside, dim, rows)
        if plain is None:
            continue
        position, row = plain
        most = bounds(row.index.coordinates[1])[1]
        spare = [not _is_implied(low, factor, position, most + 1) for factor in beside]
        if all(spare):
            continue
        changed = [equal(low, position, row) if factor is hit else factor for factor in inner]
        found = product(low, changed, domain)
        total = low.terms.fold("sum", (found,), 1) if rows > 1 else leading(low.terms, found, 1)
        for factor, kept in zip(rest, spare, strict=True):
            total = multiply(low, total, factor) if kept else total
        return total
    return None


def _without_conditions(
    low: Lowering, hit: Access, beside: Sequence[Access], dim: int, rows: int
) -> tuple[Access, Access] | None:
    """Of ``position * conditions == row``, position and row, if all conditions stand beside the sum."""
    term = low.terms[hit.term]
    if term.op != "eq":
        return None
    sides = [low.terms.read(hit.index, operand) for operand in term.operands]
    for position, row in (sides, sides[::-1]):
        if position is None or row is None or low.terms[row.term].op != "index":
            continue
        # Of a sum, all rows; of one row alone, whichever it is.
        if rows > 1 and row.index.coordinates[1] != along(dim, rows):
            continue
        parts = factors(low.terms, position)
        conditions = [part for part in parts if low.terms[part.term].op in COMPARISONS]
        if all(condition in beside for condition in conditions):
            value = [part for part in parts if part not in conditions]
            return product(low, value, position.index.domain), row
    return None


def _is_implied(low: Lowering, condition: Access, position: Access, rows: int) -> bool:
    """Whether a comparison holds wherever ``0 <= position < rows``."""
    term = low.terms[condition.term]
    if term.op not in COMPARISONS:
        return False
    left, right = (low.terms.read(condition.index, operand) for operand in term.operands)
    if left is None or right is None:
        return False
    gap = linear(low.terms, ((right, 1), (left, -1)))
    above = _difference(gap, linear(low.terms, ((position, 1),)))
    below = _difference(gap, linear(low.terms, ((position, -1),)))
    least = COMPARISONS[term.op]
    return (above is not None and above >= least) or (below is not None and below - (rows - 1) >= least)


def _difference(one: Linear | None, other: Linear | None) -> int | None:
    """By how much ``one`` exceeds ``other``, if that is a number."""
    if one is None or other is None or dict(one[0]) != dict(other[0]):
        return None
    minus = [term._replace(factor=-term.factor) for term in other[1].terms]
    gap = aligned(one[1].offset - other[1].offset, [*one[1].terms, *minus])
    return gap.offset if gap is not None and not gap.terms else None
