"""The digits of a domain on which anything that is read over it depends.

What is computed of heads that were repeated is computed of the heads and repeated then: of ``head // 2`` only
the third of six heads matters, not whether it is the first or the second of its pair.
"""

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod

from scalify.layout.digits import ZERO, Expr, Term, summed
from scalify.layout.maps import IndexMap, Shape, along

Digits = tuple[tuple[int, int], ...]
"""Stride and size of each, in increasing stride."""


@dataclass(frozen=True, slots=True)
class Alive:
    """The rank, then each dimension that matters, and which of its digits do (None: all of it)."""

    dims: tuple[tuple[int, Digits | None], ...]

    def space(self, domain: Shape) -> Shape:
        """The shape of what is left of a domain."""
        return tuple(
            domain[dim] if digits is None else prod(size for _, size in digits) for dim, digits in self.dims
        )

    def embedding(self, domain: Shape) -> IndexMap:
        """From what is left to the whole domain: other dimensions and digits are read at 0."""
        coordinates = [ZERO] * len(domain)
        for position, (dim, digits) in enumerate(self.dims):
            coordinates[dim] = (
                along(position, domain[dim])
                if digits is None
                else summed(0, [Term(position, own, size, stride) for own, stride, size in _packed(digits)])
            )
        return IndexMap(self.space(domain), domain, tuple(coordinates))

    def projection(self, domain: Shape) -> tuple[Expr, ...]:
        """Where each element of the domain stands in what is left of it."""
        return tuple(
            along(dim, domain[dim])
            if digits is None
            else summed(0, [Term(dim, stride, size, own) for own, stride, size in _packed(digits)])
            for dim, digits in self.dims
        )

    def place(self, dim: int) -> int:
        """Which dimension of what is left is the domain's ``dim``."""
        return [kept for kept, _ in self.dims].index(dim)


def _packed(digits: Digits) -> list[tuple[int, int, int]]:
    """Own stride, stride in the domain, and size of each digit."""
    packed: list[tuple[int, int, int]] = []
    own = 1
    for stride, extent in digits:
        packed.append((own, stride, extent))
        own *= extent
    return packed


def alive(domain: Shape, indices: Sequence[IndexMap], whole: Collection[int], *, by_digits: bool) -> Alive:
    """What matters to anything read through ``indices``; dimensions in ``whole`` do in any case."""
    reads = {dim for index in indices for dim in index.reads()}
    dims: list[tuple[int, Digits | None]] = [(0, None if 0 in reads or 0 in whole else ())]
    for dim in range(1, len(domain)):
        if dim in whole:
            dims.append((dim, None))
        elif dim in reads:
            dims.append((dim, _read_digits(domain[dim], dim, indices) if by_digits else None))
    return Alive(tuple(dims))


def reads_by_digits(domain: Shape, indices: Sequence[IndexMap]) -> bool:
    """Whether any dimension but the rank is read otherwise than as a whole."""
    return any(
        term.dim and (term.stride > 1 or term.size < domain[term.dim])
        for index in indices
        for expr in index.coordinates
        for term in expr.terms
    )


def leaves_open(index: IndexMap) -> bool:
    """Whether what is read tells less than the whole place from which it is read."""
    domain = index.domain
    left = dict(alive(domain, [index], (), by_digits=True).dims)
    return any(size > 1 and left.get(dim, ()) is not None for dim, size in enumerate(domain))


def _read_digits(size: int, dim: int, indices: Sequence[IndexMap]) -> Digits | None:
    """The digits of a dimension that are read; None where that is all of it, or they do not fit together."""
    read = sorted(
        {
            (term.stride, term.stride * term.size)
            for index in indices
            for expr in index.coordinates
            for term in expr.terms
            if term.dim == dim
        }
    )
    joined: list[tuple[int, int]] = []
    for start, end in read:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    ends = [end for pair in joined for end in pair] + [size]
    if joined == [(1, size)] or any(high % low for low, high in itertools.pairwise(ends)):
        return None
    return tuple((start, end // start) for start, end in joined)
