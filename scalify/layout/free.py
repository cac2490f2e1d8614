"""What to take for digits of a place that nothing determines, so that places go on evenly.

Of heads that were repeated, a value says of which head it is, not of which repetition. Any will do; that
which stands where the reader stands is the one that fits what is read beside it.
"""

from collections.abc import Mapping

from scalify.layout.digits import ZERO, Expr, Term, summed
from scalify.layout.maps import Free, Shape


def going_on(domain: Shape, target: Shape) -> Free:
    """The digits below or above those that are known, or the same dimension of the reader."""

    def free(dim: int, stride: int, extent: int, found: Mapping[tuple[int, int, int], Expr]) -> Expr | None:
        for (at, known, size), value in found.items():
            if at != dim or not value.terms:
                continue
            if known == stride * extent:
                term = min(value.terms, key=lambda term: abs(term.factor))
                if term.factor == 1 and term.stride % extent == 0:
                    return Expr(0, (Term(term.dim, term.stride // extent, extent, 1),))
            if known * size == stride:
                term = max(value.terms, key=lambda term: abs(term.factor))
                above = term.stride * term.size
                if term.factor * term.size == size and domain[term.dim] % (above * extent) == 0:
                    return Expr(0, (Term(term.dim, above, extent, 1),))
        return _own(domain, dim, stride, extent) if len(domain) == len(target) else ZERO

    return free


def _own(domain: Shape, dim: int, stride: int, extent: int) -> Expr:
    """The reader's own place, its ranks one after the other."""
    size = domain[dim]
    if size % (stride * extent) == 0:
        return summed(0, [Term(dim, stride, extent, 1)])
    if stride == 1 and domain[0] * size == extent:
        return summed(0, [Term(0, 1, domain[0], size), Term(dim, 1, size, 1)])
    return ZERO
