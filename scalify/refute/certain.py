"""How far rounding may have moved a result: the program is run again with noise in everything it computes.

In: a program and its inputs. Out: for each element of each output a bound of what rounding may have done to
it. Every real number that a node computes is multiplied by 1 + e, with e = 2^-36 or -2^-36 by chance, and the
program's own numbers move within what their floats may be off, three times over. The bound is 64 times the
widest spread. The rounding of double precision is 2^-53, a hundred-thousandth of that noise, so the bound is
generous even where cancellation magnifies errors; where a comparison or a maximum hangs by a thread, noise
tips it over and the bound becomes as large as the jump.
(Stochastic arithmetic: Vignes, "A stochastic arithmetic for reliable scientific computation", 1993.)
"""

from collections.abc import Mapping

import numpy as np

from scalify.ir.evaluate import PerRank, Seen
from scalify.ir.graph import Graph, Node
from scalify.ir.ops.dtypes import KIND_OF
from scalify.ir.ops.spec import Array
from scalify.refute.bits import Bits, below, bits, key_of
from scalify.refute.constants import masks, moved, moved_attributes, with_infinity
from scalify.refute.pair import Given
from scalify.refute.run import Ways, run
from scalify.verdict import Draw

NOISE = 2.0**-36
RUNS = 3
FACTOR = 64.0
FLOOR = 2.0**-40
"""Of an output's largest element: what is taken for rounding in any case."""

_EXACT = frozenset({
    "input", "constant", "iota", "rank", "opaque", "random", "reshape", "transpose", "broadcast", "slice",
    "concat", "pad", "reverse", "cast", "take", "take_along", "scatter", "index_put", "update_slice",
    "dynamic_slice", "dynamic_update_slice", "tril", "triu", "one_hot", "where", "neg", "abs", "max", "min",
    "relu", "sign", "clamp", "sort", "topk_values", "all_gather", "all_to_all", "permute", "broadcast_from",
})  # fmt: skip
"""Ops whose results are numbers that were there before."""

_POWERS = frozenset({"exp", "exp2", "sigmoid", "softmax", "pow"})
SMALLEST = 2.0**-1000


def rounding(graph: Graph, given: Given, draw: Draw, plain: Mapping[str, PerRank]) -> dict[str, list[Array]]:
    """The bounds by output and rank; infinity where an element loses or gains a value under noise."""
    widest = {name: [np.zeros(value.shape) for value in values] for name, values in plain.items()}
    for number in range(RUNS):
        noisy = run(moved_attributes(graph, number), given, draw, Ways(seen=_noise(number)))
        for name, values in noisy.items():
            for rank, value in enumerate(values):
                widest[name][rank] = np.maximum(widest[name][rank], _spread(plain[name][rank], value))
    if masks(graph):
        unmasked = run(graph, given, draw, Ways(seen=_infinite))
        for name, values in unmasked.items():
            for rank, value in enumerate(values):
                widest[name][rank] = np.where(
                    _is_emptied(plain[name][rank], value), np.inf, widest[name][rank]
                )
    return {name: [_bound(each, plain[name][rank]) for rank, each in enumerate(spreads)]
            for name, spreads in widest.items()}  # fmt: skip


def _infinite(node: Node, values: PerRank) -> PerRank:
    """Minus infinity where masks are filled with low numbers: rows without scores lose their value."""
    return [with_infinity(node, value) for value in values] if node.op == "constant" else values


def _is_emptied(plain: Array, infinite: Array) -> Array:
    """What loses its value, unless all does: then masks are multiplied, and nothing can be said."""
    lost = np.isfinite(plain) & ~np.isfinite(infinite)
    return lost & np.isfinite(infinite).any()


def _spread(plain: Array, noisy: Array) -> Array:
    with np.errstate(all="ignore"):
        spread = np.abs(noisy.astype(np.complex128) - plain) if plain.dtype.kind == "c" else np.abs(
            noisy.astype(np.float64) - plain)  # fmt: skip
    both = np.isfinite(plain) & np.isfinite(noisy)
    neither = ~np.isfinite(plain) & ~np.isfinite(noisy)
    return np.where(both, spread, np.where(neither, 0.0, np.inf))


def _bound(spread: Array, plain: Array) -> Array:
    finite = np.abs(plain[np.isfinite(plain)])
    largest = float(finite.max()) if finite.size else 0.0
    return FACTOR * spread + (FLOOR * largest if plain.dtype.kind in "fc" else 0.0)


def _lifted(node: Node, value: Array, words: Bits) -> Array:
    """Powers too small for double precision, as small ones that are not zero: what hangs on them shows."""
    if node.op not in _POWERS or value.dtype.kind != "f":
        return value
    return np.where(np.abs(value) < SMALLEST, SMALLEST * (1.0 + below(words, 64).reshape(value.shape)), value)


def _noise(number: int) -> Seen:
    def noisy(node: Node, values: PerRank) -> PerRank:
        if node.op == "constant":
            value = moved(node, values[0], number)
            return [value if each is values[0] else moved(node, each, number) for each in values]
        if node.op in _EXACT or KIND_OF[node.type.dtype] not in ("float", "complex"):
            return values
        made: dict[int, Array] = {}
        for rank, value in enumerate(values):
            if id(value) not in made:
                words = bits(key_of("noise", number, node.id, rank), np.arange(value.size))
                signs = (2.0 * below(words, 2) - 1.0).reshape(value.shape)
                made[id(value)] = _lifted(node, value, words) * (1.0 + NOISE * signs)
        return [made[id(value)] for value in values]

    return noisy
