"""Index maps: for every element of one tensor, the element of another that it reads.

A map goes from the indices of its ``domain`` (the shape of the tensor that reads) to those of its
``codomain`` (the tensor that is read). Slices, transposes, reshapes, broadcasts, shards and gathers over
ranks are such maps, and so are all their chains: ``then`` composes, ``solve`` inverts where it can.

By convention dimension 0 of every shape is the rank.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from scalify.layout.digits import ZERO, Expr, Term, bounds, divided, split, substituted, summed

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IndexMap:
    """``coordinates[d]`` is the index read along dimension ``d`` of the codomain."""

    domain: Shape
    codomain: Shape
    coordinates: tuple[Expr, ...]

    def __post_init__(self) -> None:
        if len(self.coordinates) != len(self.codomain):
            raise ValueError(f"{len(self.coordinates)} coordinates for {len(self.codomain)} dimensions")

    def reads(self) -> frozenset[int]:
        """The dimensions of the domain on which anything depends."""
        return frozenset(term.dim for expr in self.coordinates for term in expr.terms)


def along(dim: int, size: int, factor: int = 1, offset: int = 0) -> Expr:
    """The index along one whole dimension, scaled and moved."""
    return Expr(offset, (Term(dim, 1, size, factor),)) if size > 1 else Expr(offset, ())


def identity(shape: Shape) -> IndexMap:
    """Every element reads itself."""
    return IndexMap(shape, shape, tuple(along(dim, size) for dim, size in enumerate(shape)))


def is_identity(index: IndexMap) -> bool:
    """Whether every element reads itself."""
    return index.domain == index.codomain and index.coordinates == identity(index.domain).coordinates


def then(inner: IndexMap, outer: IndexMap) -> IndexMap | None:
    """First ``inner``, then ``outer``: what an element reads of what it reads.

    None where a digit of the tensor between cannot be told from digits of the domain.
    """
    if inner.codomain != outer.domain:
        raise ValueError(f"maps do not meet: {inner.codomain} is not {outer.domain}")
    coordinates: list[Expr] = []
    for expr in outer.coordinates:
        value = substituted(expr, inner.coordinates, inner.domain)
        if value is None:
            return None
        coordinates.append(value)
    return IndexMap(inner.domain, outer.codomain, tuple(coordinates))


def transposed(shape: Shape, perm: Sequence[int]) -> IndexMap:
    """Result dimension ``i`` is source dimension ``perm[i]``; ``shape`` is the source's."""
    domain = tuple(shape[dim] for dim in perm)
    coordinates = [ZERO] * len(shape)
    for result_dim, source_dim in enumerate(perm):
        coordinates[source_dim] = along(result_dim, shape[source_dim])
    return IndexMap(domain, shape, tuple(coordinates))


def sliced(shape: Shape, starts: Sequence[Expr], sizes: Sequence[int], steps: Sequence[int]) -> IndexMap:
    """A window of a source of ``shape``; a start may depend on the rank (dimension 0) of the window."""
    coordinates = tuple(
        summed(start.offset, (*start.terms, *along(dim, size, step).terms))
        for dim, (start, size, step) in enumerate(zip(starts, sizes, steps, strict=True))
    )
    return IndexMap(tuple(sizes), shape, coordinates)


def broadcast(shape: Shape, target: Shape, dims: Sequence[int]) -> IndexMap:
    """Source dimension ``j`` becomes target dimension ``dims[j]``; sources of size 1 are repeated."""
    coordinates = tuple(
        along(dims[j], size) if target[dims[j]] == size else ZERO for j, size in enumerate(shape)
    )
    return IndexMap(target, shape, coordinates)


def reshaped(shape: Shape, target: Shape) -> IndexMap | None:
    """A reshape of ``shape`` to ``target``, row-major; None where their radices have no common refinement."""
    if prod(shape) != prod(target):
        raise ValueError(f"{shape} has not as many elements as {target}")
    flat: list[Term] = []
    weight = 1
    for dim in range(len(target) - 1, -1, -1):
        flat.append(Term(dim, 1, target[dim], weight))
        weight *= target[dim]
    rest = summed(0, flat)
    coordinates: list[Expr] = []
    for size in reversed(shape):
        parts = split(rest, size)
        if parts is None:
            return None
        rest, coordinate = parts
        coordinates.append(coordinate)
    return IndexMap(target, shape, tuple(reversed(coordinates)))


def part(index: IndexMap, dim: int, start: int, size: int) -> IndexMap | None:
    """A window of the domain along ``dim``."""
    sizes = (*index.domain[:dim], size, *index.domain[dim + 1 :])
    embed = tuple(along(d, n, offset=start if d == dim else 0) for d, n in enumerate(sizes))
    return then(IndexMap(sizes, index.domain, embed), index)


def reverse(shape: Shape, axes: Sequence[int]) -> IndexMap:
    """Source read from its end along ``axes``."""
    coordinates = tuple(
        along(dim, size, -1, size - 1) if dim in axes else along(dim, size) for dim, size in enumerate(shape)
    )
    return IndexMap(shape, shape, coordinates)


Free = Callable[[int, int, int, Mapping[tuple[int, int, int], Expr]], Expr | None]
"""What a digit (dimension, stride, size) that nothing determines is taken to be, given those that are."""


def solve(wanted: Sequence[IndexMap], given: Sequence[IndexMap], free: Free | None = None) -> IndexMap | None:
    """The map ``m`` with ``then(m, given[i]) == wanted[i]`` for every ``i``.

    ``wanted`` go from one domain, ``given`` from another (the codomain of ``m``). Digits of that which no
    given map reads may be anything: ``free`` chooses them; without it there is no answer. None too where no
    such map is expressible. Whatever is returned was composed again and compared: it is right even where the
    inversion was lucky.
    """
    target = given[0].domain
    found: dict[tuple[int, int, int], Expr] = {}
    for want, give in zip(wanted, given, strict=True):
        for expr, value in zip(give.coordinates, want.coordinates, strict=True):
            if not _read_digits(expr, value, found):
                return None
    coordinates = tuple(_assembled(dim, size, found, free) for dim, size in enumerate(target))
    if any(coordinate is None for coordinate in coordinates):
        return None
    answer = IndexMap(wanted[0].domain, target, tuple(c for c in coordinates if c is not None))
    if any(then(answer, give) != want for want, give in zip(wanted, given, strict=True)):
        return None
    return answer


def _read_digits(expr: Expr, value: Expr, found: dict[tuple[int, int, int], Expr]) -> bool:
    """Solve ``expr(digits) == value`` for the digits of ``expr``, where they are positional."""
    if not expr.terms:
        return expr == value
    rest = summed(value.offset - expr.offset, value.terms)
    terms = sorted(expr.terms, key=lambda term: abs(term.factor))
    for term in terms:
        if term.factor < 0:
            rest = summed(rest.offset - term.factor * (term.size - 1), rest.terms)
    unit = 1
    for position, term in enumerate(terms):
        weight = abs(term.factor)
        step = divided(rest, weight // unit) if weight % unit == 0 else None
        if step is None:
            return False
        unit = weight
        rest = step
        if position + 1 < len(terms):
            ratio, odd = divmod(abs(terms[position + 1].factor), weight)
            parts = split(rest, ratio) if not odd and ratio >= term.size else None
            if parts is None:
                return False
            value_of_digit = parts[1]
            rest = Expr(
                parts[0].offset * ratio, tuple(t._replace(factor=t.factor * ratio) for t in parts[0].terms)
            )
        else:
            value_of_digit = rest
        low, high = bounds(value_of_digit)
        if low < 0 or high >= term.size:
            return False
        if term.factor < 0:
            value_of_digit = Expr(
                term.size - 1 - value_of_digit.offset,
                tuple(t._replace(factor=-t.factor) for t in value_of_digit.terms),
            )
        found.setdefault((term.dim, term.stride, term.size), value_of_digit)
    return True


def _assembled(
    dim: int, size: int, found: Mapping[tuple[int, int, int], Expr], free: Free | None
) -> Expr | None:
    """The index along one dimension from the digits known of it."""
    offset = 0
    terms: list[Term] = []
    stride = 1
    while stride < size:
        sizes = [n for d, s, n in found if d == dim and s == stride]
        if sizes:
            extent = max(sizes)
            value = found[dim, stride, extent]
        else:
            extent = min((s for d, s, _ in found if d == dim and s > stride), default=size) // stride
            value = free(dim, stride, extent, found) if free is not None else None
            if value is None or bounds(value)[0] < 0 or bounds(value)[1] >= extent:
                return None
        offset += value.offset * stride
        terms.extend(t._replace(factor=t.factor * stride) for t in value.terms)
        stride *= extent
    return summed(offset, terms) if stride == size else None


def is_onto(index: IndexMap) -> bool:
    """Whether every element of the codomain is surely read: all its digits are digits of the domain."""
    used: list[Term] = []
    for expr, size in zip(index.coordinates, index.codomain, strict=True):
        weight = 1
        for term in sorted(expr.terms, key=lambda term: abs(term.factor)):
            is_digit = index.domain[term.dim] % (term.stride * term.size) == 0
            if term.factor != weight or not is_digit:
                return False
            weight *= term.size
        if weight != size or expr.offset:
            return False
        used.extend(expr.terms)
    used.sort()
    return all(
        one.dim != other.dim or other.stride % (one.stride * one.size) == 0
        for one, other in itertools.pairwise(used)
    )
