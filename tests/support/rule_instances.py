"""Random instances of what the prover's rules are asked, with values for which their premises hold.

An instance is made backwards: random baseline values, random views of them, and candidate values that satisfy
these views (the last member of a pending sum makes up for the others). What a rule then concludes is compared
with the values. Nothing of the rules is used to make an instance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from random_layouts import Layouts, places

from scalify.layout.digits import ZERO, Expr, Term, summed
from scalify.layout.maps import IndexMap, Shape, along, then
from scalify.layout.views import Partial, RankDigits, View, independent_of
from scalify.normalize.meaning import applied, combined
from scalify.normalize.terms import INDEX_EXTENT
from scalify.prove.rules.counterpart import Reading

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor that can be read anywhere: an array, or (None) the leaf whose element i is i."""

    array: Array | None

    def at_shape(self) -> Shape:
        """The shape of an array."""
        if self.array is None:
            raise ValueError("the leaf of all numbers has no array")
        return self.array.shape

    def at(self, index: IndexMap) -> Array:
        """What is read through a map, at every index of its domain."""
        read = places(index)
        return read[1].astype(np.float64) if self.array is None else self.array[tuple(read)]


@dataclass(frozen=True, slots=True)
class Operand:
    """A value of the baseline, and a candidate's value of which ``view`` holds."""

    baseline: Value
    candidate: Array
    view: View


@dataclass
class Source:
    """Where instances come from: everything is a function of the seed."""

    rng: Random

    def __post_init__(self) -> None:
        self.layouts = Layouts(self.rng)
        self.numbers = np.random.default_rng(self.rng.randrange(2**32))

    def values(self, shape: Shape, *, truth: bool = False) -> Array:
        """Random numbers away from 0, or truth values."""
        if truth:
            return self.numbers.integers(0, 2, shape).astype(np.float64)
        return self.numbers.choice((-1.0, 1.0), shape) * self.numbers.uniform(0.5, 1.5, shape)

    def scale(self) -> Fraction:
        """Often 1."""
        return self.rng.choice((Fraction(1), Fraction(1), Fraction(2), Fraction(-1), Fraction(3, 4)))

    def idle_digits(self, index: IndexMap) -> RankDigits:
        """Digits of the rank on which a map does not depend, if some are met soon; else any, or none."""
        ranks = index.domain[0]
        drawn = [digits for digits in (self.layouts.digits(ranks) for _ in range(8)) if digits]
        proper = [digits for digits in drawn if all(ranks % (stride * size) == 0 for stride, size in digits)]
        idle = [digits for digits in proper if is_constant_along(index, digits)]
        return idle[0] if idle else proper[0] if proper else ()

    def partial(self, ranks: int, index: IndexMap | None = None) -> Partial | None:
        """Often none; of digits on which the map does not depend."""
        if self.rng.random() < 0.6:
            return None
        digits = self.layouts.digits(ranks)
        if not digits or (index is not None and not is_constant_along(index, digits)):
            return None
        return Partial(self.rng.choice(("sum", "sum", "sum", "max", "min", "prod")), digits)

    def realised(self, view: View, baseline: Value, *, truth: bool = False) -> Array:
        """A candidate's value of which the view holds, and which is arbitrary otherwise."""
        x = self.values(view.shape, truth=truth)
        target = float(view.scale) * baseline.at(view.index)
        box = tuple(slice(start, start + size) for start, size in view.window)
        if view.partial is None:
            x[box] = target
            return x
        for group in groups_of(view.shape[0], view.partial.digits):
            self._settle(x, group, target, box[1:], view.partial.kind)
        return x

    def _settle(
        self, x: Array, group: Sequence[int], target: Array, box: tuple[slice, ...], kind: str
    ) -> None:
        """Make one member what the combination lacks."""
        owner, *others = self.rng.sample(group, len(group))
        wanted = target[owner]
        if kind in ("max", "min"):
            sign = -1 if kind == "max" else 1
            for other in others:
                x[(other, *box)] = wanted + sign * np.abs(x[(other, *box)])
            x[(owner, *box)] = wanted
            return
        rest = [x[(other, *box)] for other in others]
        if kind == "sum":
            x[(owner, *box)] = wanted - sum(rest, np.zeros_like(wanted))
        else:
            others_product = np.prod(np.stack(rest), axis=0)
            x[(owner, *box)] = wanted / np.where(others_product == 0, 1.0, others_product)

    def operand(self, shape: Shape | None = None, *, truth: bool = False) -> Operand:
        """A view of a tensor of this shape, with values."""
        view = self.layouts.view(self.layouts.shape() if shape is None else shape)
        if view.partial is not None and not is_constant_along(view.index, view.partial.digits):
            view = View(view.shape, view.window, view.index, view.scale)
        baseline = Value(self.values(view.index.codomain, truth=truth))
        return Operand(baseline, self.realised(view, baseline, truth=truth), view)

    def reading(self, operand: Operand) -> Reading:
        """The operand read through a random map: by its own ranks, or by a chain of movements."""
        return Reading(self.access(operand.candidate.shape), operand.view)

    def access(self, shape: Shape) -> IndexMap:
        """A map into a tensor of this shape whose dimension 0 is the rank again."""
        if self.rng.random() < 0.3:
            return self.layouts.chain(shape)
        dims = [*range(1, len(shape))]
        self.rng.shuffle(dims)
        domain: list[int] = [shape[0]]
        coordinates: list[Expr] = [along(0, shape[0]), *[ZERO] * (len(shape) - 1)]
        for dim in dims:
            if self.rng.random() < 0.3:
                domain.append(self.rng.choice((1, 2, 3)))
            size = self.rng.randint(1, shape[dim]) if self.rng.random() < 0.2 else shape[dim]
            coordinates[dim] = along(len(domain), size, offset=self.rng.randint(0, shape[dim] - size))
            domain.append(size)
        return IndexMap(tuple(domain), shape, tuple(coordinates))


def groups_of(ranks: int, digits: RankDigits) -> list[list[int]]:
    """Ranks that differ in these digits only."""
    groups: dict[int, list[int]] = {}
    for rank in range(ranks):
        own = sum(rank // stride % size * stride for stride, size in digits)
        groups.setdefault(rank - own, []).append(rank)
    return [*groups.values()]


def is_constant_along(index: IndexMap, digits: RankDigits) -> bool:
    """Whether ranks that differ in these digits only read the same."""
    read = places(index)
    for group in groups_of(index.domain[0], digits):
        for place in read:
            if any(not np.array_equal(place[group[0]], place[rank]) for rank in group):
                return False
    return independent_of(index, digits)


def holds(view: View, candidate: Array, baseline: Value) -> bool:
    """Whether a view is true of these values."""
    if candidate.shape != view.shape:
        return False
    inside = zip(places(view.index), view.index.codomain, strict=True)
    if any(((place < 0) | (place >= size)).any() for place, size in inside):
        return False
    whole = candidate
    if view.partial is not None:
        if view.window[0] != (0, view.shape[0]):
            return False
        if any(len(group) != view.partial.ranks for group in groups_of(view.shape[0], view.partial.digits)):
            return False
        whole = combined(candidate, view.partial.kind, view.partial.digits)
    box = tuple(slice(start, start + size) for start, size in view.window)
    return bool(np.allclose(whole[box], float(view.scale) * baseline.at(view.index), rtol=1e-8, atol=1e-8))


def at(x: Array, access: IndexMap) -> Array:
    """An array read through a map."""
    return Value(x).at(access)


def operation(op: str, operands: Sequence[Array], reduced: int) -> Array:
    """What an operation of the prover computes; blocks are a function of their position."""
    if op.startswith("over_ranks:"):
        _, kind, digits = op.split(":")
        return combined(operands[0], kind, _digits(digits))
    if not op.startswith("block:"):
        with np.errstate(all="ignore"):
            return applied(op, operands, reduced)
    made = int(op.split(":")[1])
    x = np.prod(np.stack(operands), axis=0)
    inner = x.shape[x.ndim - made - reduced :]
    weights = np.random.default_rng(17).uniform(0.5, 1.5, inner)
    weighted = x * weights
    return (
        np.tanh(weighted.sum(axis=tuple(range(x.ndim - reduced, x.ndim)))) if reduced else np.tanh(weighted)
    )


def _digits(text: str) -> RankDigits:
    numbers = [int(number) for number in "".join(c if c.isdigit() else " " for c in text).split()]
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


@dataclass(frozen=True, slots=True)
class Joint:
    """An operation of both programs, whose index spaces one map joins."""

    op: str
    operands: tuple[Operand, ...]
    accesses: tuple[IndexMap, ...]
    reduced: int
    given: tuple[IndexMap, ...]
    given_reduced: int

    def readings(self) -> list[Reading]:
        """The candidate's operands with their views."""
        return [
            Reading(access, operand.view)
            for access, operand in zip(self.accesses, self.operands, strict=True)
        ]

    def candidate(self) -> Array:
        """The candidate's result."""
        read = [
            at(operand.candidate, access)
            for access, operand in zip(self.accesses, self.operands, strict=True)
        ]
        return operation(self.op, read, self.reduced)

    def baseline(self) -> Value:
        """The baseline's result."""
        read = [operand.baseline.at(index) for index, operand in zip(self.given, self.operands, strict=True)]
        return Value(operation(self.op, read, self.given_reduced))


POINTS = (
    *(("add", 2), ("mul", 2), ("max", 2), ("min", 2), ("lt", 2), ("le", 2), ("eq", 2), ("where", 3)),
    *(("exp", 1), ("tanh", 1), ("reciprocal", 1), ("abs", 1), ("sigmoid", 1), ("atan2", 2)),
)
FOLDS = ("sum", "sum", "max", "min", "prod")


class Joints:
    """Makes operations of both programs whose index spaces correspond digit by digit."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._rng = source.rng
        self._scale = source.scale()
        self._kind = "sum"
        self._digits: RankDigits = ()

    def joint(self) -> Joint | None:
        """One operation; None where no map could be made of what was drawn."""
        draw = self._rng.random()
        if draw < 0.45:
            op, arity = self._rng.choice(POINTS)
            return self._made(op, arity, folds=False)
        if draw < 0.8:
            return self._made(self._rng.choice(FOLDS), 1, folds=True)
        if draw < 0.9:
            return self._block()
        return self._over_ranks()

    def _made(self, op: str, arity: int, *, folds: bool) -> Joint | None:
        spaces = self.spaces(folds=folds)
        self._kind = op if op in FOLDS and self._rng.random() < 0.8 else "sum"
        self._digits = self._source.idle_digits(spaces.joint)
        operands: list[tuple[Operand, IndexMap, IndexMap]] = []
        for place in range(arity):
            made = self._operand(spaces, truth=op == "where" and place == 0, covers=arity == 1)
            if made is None:
                return None
            operands.append(made)
        self._perturb(operands)
        return _joint(op, operands, spaces.reduced, spaces.given_reduced)

    def _perturb(self, operands: list[tuple[Operand, IndexMap, IndexMap]]) -> None:
        """Now and then the operands are not what they should be: the premises hold all the same."""
        if (
            len(operands) > 1
            and self._rng.random() < 0.1
            and operands[0][2].codomain == operands[1][2].codomain
        ):
            (one, access, given), (other, second, its) = operands[:2]
            operands[0], operands[1] = (one, access, its), (other, second, given)

    def _block(self) -> Joint | None:
        spaces = self.spaces(folds=False)
        inner = self._source.layouts.shape(1, 12)
        made = self._rng.randint(0, len(inner) - 1)
        domain, given = (*spaces.domain, *inner), (*spaces.given, *inner)
        joint = IndexMap(domain, given, (*spaces.joint.coordinates, *_same(len(spaces.domain), inner)))
        if self._rng.random() < 0.2 and len(inner) > 1 and inner[0] == inner[1]:
            order = (1, 0, *range(2, len(inner)))
            swapped = tuple(_same(len(spaces.domain), inner)[dim] for dim in order)
            joint = IndexMap(domain, given, (*spaces.joint.coordinates, *swapped))
        reduced = len(inner) - made
        operand = self._operand(Spaces(domain, given, joint, reduced, reduced), truth=False, covers=True)
        return None if operand is None else _joint(f"block:{made}:f:():()", [operand], reduced, reduced)

    def _over_ranks(self) -> Joint | None:
        """Both programs combine over ranks; the candidate's groups may be others of the baseline's."""
        source = self._source
        ranks = source.layouts.ranks()
        digits = source.layouts.digits(ranks)
        shape = source.layouts.shape(ranks, 80)
        if not digits:
            return None
        joint = then(source.layouts.chain(shape, 2), IndexMap(shape, shape, tuple(_same(0, shape))))
        if joint is None or joint.domain[0] % ranks:
            return None
        spaces = Spaces(joint.domain, shape, joint, 0, 0)
        if joint.domain[0] != ranks:
            return None
        operand = self._operand(spaces, truth=False, covers=True)
        kind = self._rng.choice(FOLDS)
        return None if operand is None else _joint(f"over_ranks:{kind}:{digits}", [operand], 0, 0)

    def spaces(self, *, folds: bool) -> "Spaces":
        """Index spaces of both sides, and the map between: digits of the baseline's dealt to the candidate's.

        Digits of kept dimensions go to the rank or to kept dimensions, folded ones to the rank or to folded
        dimensions; the candidate may have further digits on which nothing depends.
        """
        rng = self._rng
        ranks_given = rng.choice((1, 1, 1, 2))
        kept = [ranks_given, *(rng.choice((1, 2, 3, 4, 6)) for _ in range(rng.randint(0, 2)))]
        folded = [rng.choice((2, 3, 4, 6)) for _ in range(rng.randint(1, 2))] if folds else []
        given = (*kept, *folded)
        own_kept, own_folded = 1 + rng.randint(0, 2), rng.randint(1, 2) if folds else 0
        digits: list[list[tuple[int, int, int]]] = [[] for _ in range(own_kept + own_folded)]
        for dim, size in enumerate(given):
            for stride, radix in self._cut(size):
                if dim < len(kept):
                    place = rng.randrange(own_kept)
                else:
                    place = (
                        rng.choice((0, *range(own_kept, own_kept + own_folded))) if rng.random() < 0.97 else 0
                    )
                digits[place].append((dim, stride, radix))
        for place in range(len(digits)):
            if rng.random() < (0.3 if place else 0.6):
                digits[place].append((-1, 1, rng.choice((2, 3))))
            rng.shuffle(digits[place])
        return _spaces(given, digits, own_folded, len(folded), rng)

    def _cut(self, size: int) -> list[tuple[int, int]]:
        cut: list[tuple[int, int]] = []
        stride = 1
        while stride < size:
            radix = self._rng.choice([n for n in range(2, size // stride + 1) if size // stride % n == 0])
            cut.append((stride, radix))
            stride *= radix
        return cut

    def _operand(
        self, spaces: "Spaces", *, truth: bool, covers: bool
    ) -> tuple[Operand, IndexMap, IndexMap] | None:
        """An operand of both sides: some of the baseline's dimensions, in some order, read by the candidate
        through its own dimensions on which they depend, perhaps as a part of something longer."""
        rng, source = self._rng, self._source
        dims = [dim for dim in range(len(spaces.given)) if covers or rng.random() < 0.75]
        rng.shuffle(dims)
        space = tuple(spaces.given[dim] for dim in dims) or (1,)
        coordinates = tuple(self._read(dim, spaces.given[dim]) for dim in dims) or (ZERO,)
        given = IndexMap(spaces.given, space, coordinates)
        wanted = then(spaces.joint, given)
        if wanted is None:
            return None
        if not truth and rng.random() < 0.05:
            return self._zero(spaces)
        view, access = self._seen(spaces.domain, wanted)
        baseline = Value(source.values(space, truth=truth))
        return Operand(baseline, source.realised(view, baseline, truth=truth), view), access, given

    def _read(self, dim: int, size: int) -> Expr:
        return along(dim, size, -1, size - 1) if self._rng.random() < 0.1 else along(dim, size)

    def _zero(self, spaces: "Spaces") -> tuple[Operand, IndexMap, IndexMap]:
        """The number 0 on both sides, as normalisation holds it."""
        numbers = (1, INDEX_EXTENT)
        view = View((1,), ((0, 1),), IndexMap((1,), numbers, (ZERO, ZERO)))
        read = IndexMap(spaces.domain, (1,), (ZERO,))
        given = IndexMap(spaces.given, numbers, (ZERO, ZERO))
        return Operand(Value(None), np.zeros((1,)), view), read, given

    def _seen(self, domain: Shape, wanted: IndexMap) -> tuple[View, IndexMap]:
        """A view and the access through which it is read as ``wanted``."""
        rng = self._rng
        dims = [0, *(dim for dim in range(1, len(domain)) if dim in wanted.reads() or rng.random() < 0.2)]
        order = [0, *rng.sample(dims[1:], len(dims) - 1)]
        inner = tuple(domain[dim] for dim in order)
        position = {dim: place for place, dim in enumerate(order)}
        index = IndexMap(
            inner, wanted.codomain, tuple(_renamed(expr, position) for expr in wanted.coordinates)
        )
        longer = [
            rng.choice((0, 0, 0, 1, 2)) if place and rng.random() < 0.3 else 0 for place in range(len(inner))
        ]
        before = [rng.randint(0, extra) for extra in longer]
        shape = tuple(size + extra for size, extra in zip(inner, longer, strict=True))
        window = tuple(zip(before, inner, strict=True))
        access = IndexMap(
            domain,
            shape,
            tuple(along(dim, domain[dim], offset=before[place]) for place, dim in enumerate(order)),
        )
        if rng.random() < 0.1 and len(inner) > 1 and inner[1] > 1:
            window = (window[0], (window[1][0] + 1, window[1][1] - 1), *window[2:])
            index = (
                IndexMap(
                    (inner[0], inner[1] - 1, *inner[2:]),
                    index.codomain,
                    tuple(_moved(expr, 1, inner[1]) for expr in index.coordinates),
                )
                if _is_simple(index, 1, inner[1])
                else index
            )
            if index.domain[1] != window[1][1]:
                window = tuple(zip(before, inner, strict=True))
        scale = self._scale if rng.random() < 0.8 else self._source.scale()
        return View(shape, window, index, scale, self._partial(index)), access

    def _partial(self, index: IndexMap) -> Partial | None:
        """Often what the other operands have pending too."""
        if self._digits and self._rng.random() < 0.5 and is_constant_along(index, self._digits):
            return Partial(self._kind, self._digits)
        return self._source.partial(index.domain[0], index) if self._rng.random() < 0.2 else None


@dataclass(frozen=True, slots=True)
class Spaces:
    """Index spaces of an operation on both sides, and the map between them."""

    domain: Shape
    given: Shape
    joint: IndexMap
    reduced: int
    given_reduced: int


def _spaces(
    given: Shape,
    digits: Sequence[Sequence[tuple[int, int, int]]],
    reduced: int,
    given_reduced: int,
    rng: Random,
) -> Spaces:
    terms: list[list[Term]] = [[] for _ in given]
    domain: list[int] = []
    for place, parts in enumerate(digits):
        extent = 1
        for dim, stride, radix in parts:
            if dim >= 0:
                terms[dim].append(Term(place, extent, radix, stride))
            extent *= radix
        domain.append(extent)
    joint = IndexMap(tuple(domain), given, tuple(summed(0, part) for part in terms))
    return Spaces(tuple(domain), given, joint, reduced, given_reduced)


def _joint(
    op: str, operands: Sequence[tuple[Operand, IndexMap, IndexMap]], reduced: int, given_reduced: int
) -> Joint:
    made, accesses, given = zip(*operands, strict=True)
    return Joint(op, tuple(made), tuple(accesses), reduced, tuple(given), given_reduced)


def _same(first: int, shape: Shape) -> list[Expr]:
    return [along(first + place, size) for place, size in enumerate(shape)]


def _renamed(expr: Expr, position: dict[int, int]) -> Expr:
    return summed(expr.offset, [term._replace(dim=position[term.dim]) for term in expr.terms])


def _is_simple(index: IndexMap, dim: int, size: int) -> bool:
    """Whether a dimension is read as a whole only."""
    return all(
        t.dim != dim or (t.stride, t.size) == (1, size) for expr in index.coordinates for t in expr.terms
    )


def _moved(expr: Expr, dim: int, size: int) -> Expr:
    """The expression over the dimension without its first index."""
    offset = expr.offset + sum(t.factor for t in expr.terms if t.dim == dim)
    return summed(offset, [t._replace(size=size - 1) if t.dim == dim else t for t in expr.terms])
