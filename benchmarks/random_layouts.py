"""Random shapes, index maps and views, and what they are as tables of numbers.

Radices are mixed (2, 3, 4, 6, 8), dimension 0 is the rank, starts may be affine in digits of the rank, steps
may be negative. Everything is a function of the seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scalify.layout.digits import ZERO, Expr, Term, summed
from scalify.layout.maps import (
    IndexMap,
    Shape,
    along,
    broadcast,
    identity,
    reshaped,
    reverse,
    sliced,
    then,
    transposed,
)
from scalify.layout.ranks import joined
from scalify.layout.views import Partial, RankDigits, View, independent_of

Array = NDArray[Any]
RADICES = (2, 2, 2, 3, 4, 6, 8)
LARGEST = 300


def places(index: IndexMap) -> list[Array]:
    """Along every dimension of the codomain, the index that each element of the domain reads."""
    grid = np.indices(index.domain)
    read: list[Array] = []
    for expr in index.coordinates:
        total = np.full(index.domain, expr.offset)
        for dim, stride, size, factor in expr.terms:
            total = total + factor * (grid[dim] // stride % size)
        read.append(total)
    return read


def table(index: IndexMap) -> Array:
    """The flat number of the element that each element of the domain reads; -1 where there is none."""
    read = places(index)
    inside = np.full(index.domain, True)
    for place, size in zip(read, index.codomain, strict=True):
        inside &= (place >= 0) & (place < size)
    if not read:
        return np.zeros(index.domain, dtype=np.int64)
    clipped = tuple(np.clip(place, 0, size - 1) for place, size in zip(read, index.codomain, strict=True))
    return np.where(inside, np.ravel_multi_index(clipped, index.codomain), -1)


@dataclass(frozen=True, slots=True)
class Layouts:
    """Where random layouts come from."""

    rng: Random

    def ranks(self) -> int:
        """How many ranks there are."""
        return self.rng.choice((1, 2, 2, 4, 4, 6, 8, 12))

    def shape(self, ranks: int | None = None, largest: int = LARGEST) -> Shape:
        """Ranks first, then up to three dimensions."""
        while True:
            first = self.ranks() if ranks is None else ranks
            sizes = tuple(self.rng.choice((1, *RADICES)) for _ in range(self.rng.randint(0, 3)))
            if prod(sizes) * first <= largest:
                return (first, *sizes)

    def factors(self, number: int) -> Shape:
        """A shape of so many elements."""
        sizes: list[int] = []
        while number > 1 and self.rng.random() < 0.7:
            sizes.append(self.rng.choice([n for n in range(2, number + 1) if number % n == 0]))
            number //= sizes[-1]
        sizes.append(number)
        self.rng.shuffle(sizes)
        if self.rng.random() < 0.3:
            sizes.insert(self.rng.randint(0, len(sizes)), 1)
        return tuple(sizes)

    def movement(self, shape: Shape) -> IndexMap | None:
        """One movement of a tensor of this shape, as the reader of the result sees it."""
        kinds = (
            self._transpose,
            self._reshape,
            self._slice,
            self._broadcast,
            self._reverse,
            self._shard,
            self._exchange,
        )
        return self.rng.choice(kinds)(shape)

    def chain(self, shape: Shape, longest: int = 4) -> IndexMap:
        """Several movements, one after the other, as far as they are expressible as one."""
        index = identity(shape)
        for _ in range(self.rng.randint(0, longest)):
            step = self.movement(index.domain)
            longer = then(step, index) if step is not None and prod(step.domain) <= LARGEST else None
            index = longer or index
        return index

    def digits(self, ranks: int) -> RankDigits:
        """Some digits of the rank; none of one rank."""
        chosen: list[tuple[int, int]] = []
        stride = 1
        while stride < ranks:
            size = self.rng.choice([n for n in range(2, ranks // stride + 1) if ranks // stride % n == 0])
            if self.rng.random() < 0.5:
                chosen.append((stride, size))
            stride *= size
        return joined(tuple(chosen))

    def view(self, shape: Shape) -> View:
        """A view of a tensor of this shape: a map of it, on a window, perhaps with a sum pending."""
        window = tuple(self._part(size) if self.rng.random() < 0.3 else (0, size) for size in shape)
        partial = None
        if self.rng.random() < 0.4:
            digits = self.digits(shape[0])
            partial = (
                Partial(self.rng.choice(("sum", "sum", "max", "min", "prod")), digits) if digits else None
            )
        if partial is not None:
            window = ((0, shape[0]), *window[1:])
        sizes = tuple(size for _, size in window)
        index = self._onto(sizes, partial.digits if partial is not None else ())
        scale = Fraction(self.rng.choice((1, 1, 1, 2, -1, 3)), self.rng.choice((1, 1, 4)))
        return View(shape, window, index, scale, partial)

    def _onto(self, sizes: Shape, pending: RankDigits) -> IndexMap:
        """A map from this domain to some tensor, that does not depend on pending digits."""
        for _ in range(20):
            index = self.reader(sizes)
            if independent_of(index, pending):
                return index
        return IndexMap(sizes, (1, *sizes[1:]), (ZERO, *identity(sizes).coordinates[1:]))

    def reader(self, domain: Shape) -> IndexMap:
        """A map whose domain is given: digits of the domain dealt out to the dimensions of a codomain."""
        digits = [digit for dim, size in enumerate(domain) for digit in self._cut(dim, size)]
        self.rng.shuffle(digits)
        used = [digit for digit in digits if self.rng.random() < 0.85]
        count = self.rng.randint(1, 3)
        codomain: list[int] = []
        coordinates: list[Expr] = []
        for place in range(count):
            expr, size = self._dealt(used[place::count])
            coordinates.append(expr)
            codomain.append(size)
        return IndexMap(domain, tuple(codomain), tuple(coordinates))

    def _dealt(self, digits: Sequence[tuple[int, int, int]]) -> tuple[Expr, int]:
        """One coordinate made of these digits, and how long its dimension is."""
        weight, offset = 1, 0
        terms: list[Term] = []
        for dim, stride, size in digits:
            weight *= self.rng.choice((1, 1, 1, 1, 2))
            backwards = self.rng.random() < 0.15
            terms.append(Term(dim, stride, size, -weight if backwards else weight))
            offset += weight * (size - 1) if backwards else 0
            weight *= size
        start = self.rng.choice((0, 0, 0, 1))
        return summed(offset + start, terms), max(1, weight + start + self.rng.choice((0, 0, 0, 2)))

    def _cut(self, dim: int, size: int) -> list[tuple[int, int, int]]:
        """The digits of a dimension; now and then one that is none of its own."""
        if size > 1 and self.rng.random() < 0.03:
            return [(dim, self.rng.randint(1, size), self.rng.randint(2, 5))]
        cut: list[tuple[int, int, int]] = []
        stride = 1
        while stride < size:
            radix = self.rng.choice([n for n in range(2, size // stride + 1) if size // stride % n == 0])
            cut.append((dim, stride, radix))
            stride *= radix
        return cut

    def _part(self, size: int) -> tuple[int, int]:
        start = self.rng.randint(0, size - 1)
        return start, self.rng.randint(1, size - start)

    def _transpose(self, shape: Shape) -> IndexMap:
        perm = list(range(len(shape)))
        self.rng.shuffle(perm)
        return transposed(shape, perm)

    def _reshape(self, shape: Shape) -> IndexMap | None:
        return reshaped(shape, self.factors(prod(shape)))

    def _slice(self, shape: Shape) -> IndexMap:
        starts: list[Expr] = []
        sizes: list[int] = []
        steps: list[int] = []
        for size in shape:
            step = self.rng.choice((1, 1, 1, 2, -1, -2, 3))
            count = (
                self.rng.randint(1, (size - 1) // abs(step) + 1)
                if self.rng.random() < 0.5
                else (size - 1) // abs(step) + 1
            )
            room = size - 1 - (count - 1) * abs(step)
            first = self.rng.randint(0, room)
            starts.append(Expr(first if step > 0 else first + (count - 1) * -step, ()))
            sizes.append(count)
            steps.append(step)
        return sliced(shape, starts, sizes, steps)

    def _shard(self, shape: Shape) -> IndexMap:
        """Every rank its own part along one dimension: the start is affine in digits of the rank."""
        if len(shape) < 2:
            return identity(shape)
        dim = self.rng.randint(1, len(shape) - 1)
        digits = self.digits(shape[0])
        count = prod(size for _, size in digits)
        if shape[dim] % count:
            return identity(shape)
        part = shape[dim] // count
        weights = [part]
        for _, size in digits:
            weights.append(weights[-1] * size)
        start = summed(0, [Term(0, s, n, w) for (s, n), w in zip(digits, weights, strict=False)])
        starts = [start if d == dim else ZERO for d in range(len(shape))]
        return sliced(
            shape, starts, [part if d == dim else n for d, n in enumerate(shape)], (1,) * len(shape)
        )

    def _exchange(self, shape: Shape) -> IndexMap:
        """A gather along a dimension: what varied with digits of the rank varies with the index."""
        digits = self.digits(shape[0])
        count = prod(size for _, size in digits)
        if len(shape) < 2 or prod(shape) * count > LARGEST:
            return identity(shape)
        dim = self.rng.randint(1, len(shape) - 1)
        own = [Term(0, stride, size, stride) for _, stride, size in self._rest(shape[0], digits)]
        inner = shape[dim]
        for stride, size in digits:
            own.append(Term(dim, inner, size, stride))
            inner *= size
        domain = (*shape[:dim], inner, *shape[dim + 1 :])
        coordinates = [along(d, size) for d, size in enumerate(domain)]
        coordinates[0] = summed(0, own)
        coordinates[dim] = along(dim, shape[dim])
        return IndexMap(domain, shape, tuple(coordinates))

    def _rest(self, ranks: int, digits: RankDigits) -> list[tuple[int, int, int]]:
        """The digits of the rank between these."""
        rest: list[tuple[int, int, int]] = []
        below = 1
        for stride, size in (*digits, (ranks, 1)):
            if stride > below:
                rest.append((0, below, stride // below))
            below = stride * size
        return rest

    def _broadcast(self, shape: Shape) -> IndexMap | None:
        target: list[int] = []
        dims: list[int] = []
        for size in shape:
            if target and self.rng.random() < 0.3:
                target.append(self.rng.choice((1, 2, 3)))
            dims.append(len(target))
            target.append(self.rng.choice((1, 2, 3)) if size == 1 else size)
        return broadcast(shape, tuple(target), dims) if prod(target) <= LARGEST else None

    def _reverse(self, shape: Shape) -> IndexMap:
        return reverse(shape, [dim for dim in range(len(shape)) if self.rng.random() < 0.5])
