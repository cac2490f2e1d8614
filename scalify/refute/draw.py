"""Families of values: small exact numbers first, so that a witness can be read and rounding stays small.

In: a family, a seed, and what is known of an input. Out: its elements, any of them alone or all at once. All
numbers are multiples of powers of two. Parameters with two dimensions and more are made smaller by a power of
two near the root of their size, so that what flows through many layers neither dies out nor overflows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log2, prod
from types import MappingProxyType

import numpy as np

from scalify.ir.graph import TensorType
from scalify.ir.ops.dtypes import KIND_OF
from scalify.ir.ops.spec import Array
from scalify.refute.bits import Bits, below, bits, key_of
from scalify.verdict import Domain, Draw

UNBOUNDED = 8
"""Whole numbers of which nothing is known are below this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What is to be filled: a baseline's input, or one of the candidate that is free."""

    name: str
    type: TensorType
    role: str
    domain: Domain


@dataclass(frozen=True, slots=True)
class Family:
    """How bits become real numbers, and whole ones below a size; ``scaled``: whether weights are small."""

    reals: Callable[[Bits, Domain], Array]
    wholes: Callable[[Bits, int, Domain], Array]
    scaled: bool = True


def _sixteenths(words: Bits, domain: Domain) -> Array:
    """Odd sixteenths between -2 and 2: never zero, never an integer."""
    del domain
    return (2.0 * below(words, 32) - 31.0) / 16.0


def _integers(words: Bits, domain: Domain) -> Array:
    del domain
    return below(words, 7) - 3.0


def _fractions(words: Bits, domain: Domain) -> Array:
    """Odd multiples of 2^-12 between -2 and 2: sums of these seldom lie where something is rounded."""
    del domain
    return (2.0 * below(words, 1 << 13) - ((1 << 13) - 1.0)) / 4096.0


def _positive(words: Bits, domain: Domain) -> Array:
    del domain
    return (1.0 + below(words, 32)) / 16.0


def _sparse(words: Bits, domain: Domain) -> Array:
    """One element in four is 1, 2, or 3; the others are zero."""
    del domain
    drawn = below(words, 12)
    return np.where(drawn < 3, drawn + 1.0, 0.0)


def _wide(words: Bits, domain: Domain) -> Array:
    del domain
    return (below(words, 257) - 128.0) / 4.0


def _real_edges(words: Bits, domain: Domain) -> Array:
    """Around the numbers with which the input is compared."""
    edges = np.asarray(domain.edges or (0.0, 1.0))
    steps = np.asarray((-1.0, -0.125, 0.0, 0.125, 1.0))
    choice = below(words, len(edges) * len(steps))
    return edges[choice // len(steps)] + steps[choice % len(steps)]


def _any_whole(words: Bits, size: int, domain: Domain) -> Array:
    del domain
    return below(words, size)


def _low(words: Bits, size: int, domain: Domain) -> Array:
    del domain
    return below(words, min(size, 3))


def _high(words: Bits, size: int, domain: Domain) -> Array:
    del domain
    return size - 1 - below(words, min(size, 3))


def _whole_edges(words: Bits, size: int, domain: Domain) -> Array:
    within = [int(edge) for edge in domain.edges if 0 <= edge < size and edge == int(edge)]
    options = np.asarray(within or [0, size - 1], dtype=np.int64)
    drawn = below(words, 2 * len(options))
    return np.where(drawn < len(options), options[drawn % len(options)], below(words, size))


FAMILIES: Mapping[str, Family] = MappingProxyType({
    "odd sixteenths": Family(_sixteenths, _any_whole),
    "small integers": Family(_integers, _any_whole, scaled=False),
    "fractions": Family(_fractions, _any_whole),
    "positive": Family(_positive, _high),
    "edges": Family(_real_edges, _whole_edges, scaled=False),
    "sparse": Family(_sparse, _low, scaled=False),
    "wide": Family(_wide, _any_whole, scaled=False),
})  # fmt: skip


def drawn(draw: Draw, given: Input, *, copy: int = 0) -> Array:
    """The whole tensor, in the form in which values are held; of several copies (ranks), one."""
    count = prod(given.type.shape)
    return drawn_at(draw, given, np.arange(count), copy=copy).reshape(given.type.shape)


def drawn_at(draw: Draw, given: Input, numbers: Array, *, copy: int = 0) -> Array:
    """Some elements, by their numbers in row-major order."""
    family = FAMILIES[draw.family]
    key = key_of(draw.family, draw.seed, given.name, copy)
    words = bits(key, numbers)
    kind = KIND_OF[given.type.dtype]
    if kind == "bool":
        return below(words, 2) > 0
    if kind == "int":
        return _wholes(family, words, given, numbers, int(bits(key, np.arange(1))[0]))
    scale = _scale(given) if family.scaled else 1.0
    values = family.reals(words, given.domain)
    if given.domain.positive:
        values = np.abs(values) + 0.125
    if kind == "complex":
        return scale * (values + 1j * family.reals(bits(key_of(draw.seed, given.name, copy, "i"), numbers),
                                                   given.domain))  # fmt: skip
    return scale * values


def _wholes(family: Family, words: Bits, given: Input, numbers: Array, first: int) -> Array:
    size = max(given.domain.size or UNBOUNDED, 1)
    count = prod(given.type.shape)
    if given.domain.distinct and 1 < count <= size:
        # What is written to the same place twice depends on an order that nobody states.
        keys = bits(first, np.arange(size))
        return np.argsort(keys, kind="stable")[numbers]
    values = family.wholes(words, size, given.domain)
    return values + 1 if given.domain.positive and given.domain.size is None else values


def _scale(given: Input) -> float:
    shape = given.type.shape
    if len(shape) < 2 or given.role != "parameter":
        return 1.0
    fan = float(np.sqrt(shape[-1] * shape[-2]))
    return 2.0 ** -round(log2(max(fan, 1.0)) / 2)
