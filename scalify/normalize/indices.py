"""Comparisons of indices: decided where their ranges say so, and written in one way otherwise.

``i - j < w``, ``i < j + w`` and ``j + w > i`` are one comparison: what is added to indices stands on the side
where it is added, and ``<`` of whole numbers is ``<=`` of the next.
"""

from fractions import Fraction

from scalify.layout.digits import Expr, Term, aligned, bounds
from scalify.normalize.affine import affine
from scalify.normalize.lowering import Lowering
from scalify.normalize.terms import INDEX_EXTENT, Access


def compared(low: Lowering, op: str, one: Access, other: Access) -> Access | None:
    """``one op other`` for sums of indices and whole numbers (le, lt, eq, ne); None if they are not such."""
    domain = low.common(one, other)
    left, right = affine(low.terms, low.spread(one, domain)), affine(low.terms, low.spread(other, domain))
    if left is None or right is None:
        return None
    minus = [term._replace(factor=-term.factor) for term in left.terms]
    gap = aligned(right.offset - left.offset - (op == "lt"), [*right.terms, *minus])
    if gap is None:
        return None
    least, most = bounds(gap)
    decided = _decided(op, least, most)
    if decided is not None:
        return low.fraction(Fraction(decided), domain)
    above = [term for term in gap.terms if term.factor > 0]
    below = [term._replace(factor=-term.factor) for term in gap.terms if term.factor < 0]
    greater, lesser = Expr(max(gap.offset, 0), tuple(above)), Expr(max(-gap.offset, 0), tuple(below))
    if max(bounds(greater)[1], bounds(lesser)[1]) >= INDEX_EXTENT:
        return None
    if op in ("eq", "ne") and _order(lesser) > _order(greater):
        greater, lesser = lesser, greater
    written = "le" if op == "lt" else op
    return low.point(written, low.terms.index(domain, lesser), low.terms.index(domain, greater))


def _decided(op: str, least: int, most: int) -> int | None:
    """What a comparison is whose right side exceeds its left by ``least`` to ``most``."""
    if op in ("le", "lt"):
        return 1 if least >= 0 else 0 if most < 0 else None
    if least > 0 or most < 0:
        return int(op == "ne")
    return int(op == "eq") if least == most == 0 else None


def _order(expr: Expr) -> tuple[int, tuple[Term, ...]]:
    return len(expr.terms), expr.terms
