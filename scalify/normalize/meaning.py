"""What terms mean in NumPy: the yardstick of lowering and of the prover's rules.

In: terms, the values of their leaves (dimension 0 is the rank), and a function for blocks, which have no
meaning of their own. Out: the value of any access, over its domain. Everything is float64, or complex128
where a leaf is complex; truth values are 0 and 1.
"""

from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from scalify.ir.graph import DType
from scalify.ir.ops.dtypes import INTEGER_BITS
from scalify.ir.ops.meaning.storage import wrapped
from scalify.layout.digits import Expr
from scalify.layout.maps import IndexMap
from scalify.layout.views import RankDigits
from scalify.normalize.terms import SPECIAL_NUMBERS, Access, Term, TermId, Terms

Array = NDArray[Any]
BlockMeaning = Callable[[str, Sequence[Array]], Array]
"""The result block of the operation of this name on blocks of its operands."""


class Values:
    """Values of terms, each computed once. ``leaves`` are by name, as the lowering named them."""

    def __init__(self, terms: Terms, leaves: Mapping[str, Array], blocks: BlockMeaning | None = None) -> None:
        self._terms = terms
        self._leaves = leaves
        self._blocks = blocks
        self._known: dict[TermId, Array] = {}

    def of(self, access: Access) -> Array:
        """The value of an access at every index of its domain."""
        with np.errstate(all="ignore"):
            return self._read(access)

    def _read(self, access: Access) -> Array:
        if 0 in access.index.domain:
            return np.zeros(access.index.domain)
        places = coordinates(access.index)
        if self._terms[access.term].op == "index":
            return places[1].astype(np.float64)
        return self._value(access.term)[tuple(places)]

    def _value(self, number: TermId) -> Array:
        left = [number]
        while left:
            term = self._terms[left[-1]]
            missing = [a.term for a in term.operands if a.term not in self._known and not self._is_index(a)]
            if missing:
                left.extend(missing)
                continue
            self._known[left.pop()] = self._computed(term)
        return self._known[number]

    def _is_index(self, access: Access) -> bool:
        return self._terms[access.term].op == "index"

    def _computed(self, term: Term) -> Array:
        kind, _, rest = term.op.partition(":")
        operands = [self._read(access) for access in term.operands]
        match kind:
            case "leaf":
                return _checked(term, self._leaves[rest])
            case "number":
                return np.array([_number(rest)])
            case "cat":
                return np.concatenate(operands, axis=int(rest))
            case "over_ranks":
                name, _, digits = rest.partition(":")
                return combined(operands[0], name, literal_eval(digits))
            case "block":
                return self._block(term, rest, operands)
            case _:
                return applied(term.op, operands, term.reduced)

    def _block(self, term: Term, text: str, operands: Sequence[Array]) -> Array:
        if self._blocks is None:
            raise ValueError(f"no meaning is given for {term.op}")
        made, _, text = text.partition(":")
        name, _, shapes = text.rpartition(":")
        name = name.rpartition(":")[0]
        shapes = literal_eval(shapes)
        outer = term.space[: len(term.space) - int(made)]
        result = np.zeros(term.space)
        for place in product(*map(range, outer)):
            own = (*place, *(0,) * int(made))
            first = len(term.space)
            blocks: list[Array] = []
            for operand, shape in zip(operands, shapes, strict=True):
                dims = range(first, first + len(shape))
                inner = tuple(slice(None) if dim in dims else 0 for dim in range(len(own), operand.ndim))
                blocks.append(operand[own + inner])
                first += len(shape)
            result[place] = self._blocks(name, blocks)
        return result


def coordinates(index: IndexMap) -> list[Array]:
    """The index read along every dimension of the codomain, at every index of the domain."""
    grid = np.indices(index.domain, dtype=np.int64, sparse=True)
    return [np.broadcast_to(_along(expr, grid), index.domain) for expr in index.coordinates]


def _along(expr: Expr, grid: Sequence[Array]) -> Array:
    total: Array = np.asarray(expr.offset, dtype=np.int64)
    for dim, stride, size, factor in expr.terms:
        total = total + factor * (grid[dim] // stride % size)
    return total


def combined(value: Array, kind: str, digits: RankDigits) -> Array:
    """Everybody's combination over the ranks that differ in these digits only."""
    ranks = np.arange(value.shape[0])
    base = ranks - sum((ranks // stride % size * stride for stride, size in digits), np.zeros_like(ranks))
    offsets = [
        sum(stride * place for (stride, _), place in zip(digits, places, strict=True))
        for places in product(*(range(size) for _, size in digits))
    ]
    return FOLDS[kind](np.stack([value[base + offset] for offset in offsets]), axis=0)


def applied(op: str, operands: Sequence[Array], reduced: int = 0) -> Array:
    """A point-wise operation, or a fold of the last ``reduced`` dimensions."""
    if reduced:
        (x,) = operands
        return FOLDS[op](x, axis=tuple(range(x.ndim - reduced, x.ndim)))
    name, _, argument = op.partition("[")
    result = POINTS[name](*operands, argument.removesuffix("]")) if argument else POINTS[name](*operands)
    return result if result.dtype.kind in "fc" else result.astype(np.float64)


def _checked(term: Term, value: Array) -> Array:
    if value.shape != term.space:
        raise ValueError(f"{term.op} has shape {value.shape}, not {term.space}")
    return value if value.dtype.kind in "fc" else value.astype(np.float64)


def _number(text: str) -> float:
    return float(text) if text in SPECIAL_NUMBERS else float(Fraction(text))


def _integers(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *operands: function(*(operand.astype(np.int64) for operand in operands))


def _erf(x: Array) -> Array:
    from scipy.special import erf

    return np.asarray(erf(x))


def _bit_not(x: Array, dtype: str) -> Array:
    return 2.0 ** INTEGER_BITS[_dtype(dtype)] - 1 - x if dtype.startswith("u") else -1 - x


def _shift_left(x: Array, count: Array, dtype: str) -> Array:
    bits = INTEGER_BITS[_dtype(dtype)]
    places = count.astype(np.int64)
    inside = (places >= 0) & (places < bits)
    shifted = np.left_shift(x.astype(np.int64), np.where(inside, places, 0))
    return wrapped(np.where(inside, shifted, 0), _dtype(dtype))


def _shift_right(x: Array, count: Array) -> Array:
    return np.right_shift(x.astype(np.int64), np.clip(count, 0, 63).astype(np.int64))


def _whole_power(x: Array, exponent: Array) -> Array:
    return np.trunc(np.power(x, exponent))


def _dtype(text: str) -> DType:
    return cast(DType, text)


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _reciprocal(x: Array) -> Array:
    return 1.0 / x


def _not(x: Array) -> Array:
    return 1 - x


def _is_nonzero(x: Array) -> Array:
    return x != 0


def _where(condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition != 0, x, y)


def _leaky_relu(x: Array, slope: str) -> Array:
    return np.where(x > 0, x, float(slope) * x)


def _power(x: Array, count: str) -> Array:
    return np.power(x, int(count))


def _wrap(x: Array, dtype: str) -> Array:
    return wrapped(x, _dtype(dtype))


FOLDS: Mapping[str, Callable[..., Array]] = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}

POINTS: Mapping[str, Callable[..., Array]] = {
    "abs": np.abs, "exp": np.exp, "log": np.log, "log2": np.log2, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "tanh": np.tanh, "atan": np.arctan, "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil,
    "round": np.rint, "trunc": np.trunc, "sign": np.sign, "real": np.real, "erf": _erf,
    "sigmoid": _sigmoid, "reciprocal": _reciprocal, "not": _not, "is_nonzero": _is_nonzero,
    "is_finite": np.isfinite, "is_nan": np.isnan,
    "add": np.add, "mul": np.multiply, "pow": np.power, "whole_pow": _whole_power, "atan2": np.arctan2,
    "floordiv": np.floor_divide, "mod": np.mod, "rem": np.fmod, "max": np.maximum, "min": np.minimum,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "and": _integers(np.bitwise_and), "or": _integers(np.bitwise_or), "xor": _integers(np.bitwise_xor),
    "shift_right": _shift_right,
    "where": _where, "leaky_relu": _leaky_relu, "power": _power, "bit_not": _bit_not,
    "shift_left": _shift_left, "wrap": _wrap,
}  # fmt: skip
