"""How far rounding may have moved a result: the program is run again with noise in everything it computes.

In: a program and its inputs. Out: for each element of each output a bound of what rounding may have done to
it. Every real number that a node computes is multiplied by 1 + e, with e up to 2^-36 either way, and the
program's own numbers move within what their floats may be off: four runs, of which the second mirrors the
first and the fourth the third. The bound is 64 times the widest spread. The rounding of double precision is
2^-53, a hundred-thousandth of that noise, so the bound is generous even where cancellation magnifies errors.
Elements that hang on a decision which so much noise might tip, or on what has no value, are bounded by
nothing (``scalify.refute.doubt``).
(Stochastic arithmetic: Vignes, "A stochastic arithmetic for reliable scientific computation", 1993.)
"""

from collections.abc import Mapping, Sequence

import numpy as np

from scalify.errors import OutOfRange
from scalify.ir.evaluate import PerRank
from scalify.ir.graph import Graph, Node
from scalify.ir.ops.dtypes import KIND_OF
from scalify.ir.ops.spec import Array
from scalify.refute.bits import Bits, below, bits, key_of, signed
from scalify.refute.constants import masking, moved, moved_attributes, narrow
from scalify.refute.doubt import Doubts, Jumps, Look, doubts, watching
from scalify.refute.doubt.sources import POWERS, SMALLEST
from scalify.refute.loose import is_loose, loosened
from scalify.refute.pair import Given
from scalify.refute.run import run
from scalify.verdict import Draw

NOISE = 2.0**-36
RUNS = 4
FACTOR = 64.0
FLOOR = 2.0**-40
"""Of an output's largest element: what is taken for rounding in any case."""

_EXACT = frozenset({
    "input", "constant", "iota", "rank", "opaque", "random", "reshape", "transpose", "broadcast", "slice",
    "concat", "pad", "reverse", "cast", "take", "take_along", "scatter", "index_put", "update_slice",
    "dynamic_slice", "dynamic_update_slice", "tril", "triu", "one_hot", "where", "neg", "abs", "max", "min",
    "relu", "sign", "floor", "ceil", "round", "trunc", "floordiv", "clamp", "sort", "topk_values",
    "all_gather", "all_to_all", "permute", "broadcast_from",
})  # fmt: skip
"""Ops whose results are numbers that were there before, or whole ones."""


Outputs = Mapping[str, PerRank]


def rounding(
    graph: Graph, given: Given, draw: Draw, plain: Outputs, *, garbage: bool = False
) -> dict[str, list[Array]]:
    """The bounds by output and rank: infinity where an element loses or gains a value under noise, or where
    it has one that is in doubt. ``garbage`` says that what memory held is in doubt too.
    """
    jumps = Jumps(FACTOR)
    wrapped = run(graph, given, draw, watching(graph, _recorded(jumps)))
    widest = {name: [np.zeros(value.shape) for value in values] for name, values in wrapped.items()}
    try:
        for number in range(RUNS):
            loose = loosened(moved_attributes(graph, number))
            noisy = run(loose, given, draw, watching(loose, _noise(graph, number, jumps)))
            for name, values in noisy.items():
                for rank, value in enumerate(values):
                    widest[name][rank] = np.maximum(widest[name][rank], _spread(plain[name][rank], value))
    except OutOfRange:  # a place that is computed from real numbers
        return {name: [np.full(each.shape, np.inf) for each in spreads] for name, spreads in widest.items()}
    found = _doubts(graph, given, draw, jumps, plain, garbage)
    return {name: [_bound(each, plain[name][rank], found[name][rank]) for rank, each in enumerate(spreads)]
            for name, spreads in widest.items()}  # fmt: skip


def _recorded(jumps: Jumps) -> Look:
    def record(node: Node, values: PerRank, operands: Sequence[PerRank]) -> PerRank:
        jumps.record(node, operands)
        return values

    return record


def _spread(plain: Array, noisy: Array) -> Array:
    with np.errstate(all="ignore"):
        spread = np.abs(noisy.astype(np.complex128) - plain) if plain.dtype.kind == "c" else np.abs(
            noisy.astype(np.float64) - plain)  # fmt: skip
    both = np.isfinite(plain) & np.isfinite(noisy)
    neither = ~np.isfinite(plain) & ~np.isfinite(noisy)
    return np.where(both, spread, np.where(neither, 0.0, np.inf))


def _bound(spread: Array, plain: Array, doubtful: Array | None) -> Array:
    finite = np.abs(plain[np.isfinite(plain)])
    largest = float(finite.max()) if finite.size else 0.0
    bound = FACTOR * spread + (FLOOR * largest if plain.dtype.kind in "fc" else 0.0)
    return bound if doubtful is None else np.where(doubtful, np.inf, bound)


def _doubts(graph: Graph, given: Given, draw: Draw, jumps: Jumps, plain: Outputs, garbage: bool) -> Doubts:
    """An element without a value is not doubtful for having none, but for what it hangs on."""
    found = doubts(graph, given, draw, jumps, garbage=garbage, infinite=masking(graph))
    if all(np.isfinite(value).all() for values in plain.values() for value in values):
        return found
    others = doubts(graph, given, draw, jumps, garbage=garbage, valueless=False)
    return {
        name: [
            np.where(np.isfinite(value), _filled(one, value), _filled(other, value))
            for one, other, value in zip(found[name], others[name], plain[name], strict=True)
        ]
        for name in found
    }


def _filled(mark: Array | None, value: Array) -> Array:
    return np.zeros(value.shape, dtype=np.bool_) if mark is None else mark


def _lifted(node: Node, value: Array, words: Bits) -> Array:
    """Powers too small for double precision, as small ones that are not zero: what hangs on them shows."""
    if node.op not in POWERS or value.dtype.kind != "f":
        return value
    return np.where(np.abs(value) < SMALLEST, SMALLEST * (1.0 + below(words, 64).reshape(value.shape)), value)


def _noise(graph: Graph, number: int, jumps: Jumps) -> Look:
    narrowed = narrow(graph)
    mirrored = 1 - 2 * (number % 2)

    def noisy(node: Node, values: PerRank, operands: Sequence[PerRank]) -> PerRank:
        jumps.compare(node, operands)
        if node.op == "constant":
            value = moved(node, values[0], number, narrowed)
            return [value if each is values[0] else moved(node, each, number, narrowed) for each in values]
        exact = node.op in _EXACT and not is_loose(node)
        if exact or KIND_OF[node.type.dtype] not in ("float", "complex"):
            return values
        made: dict[int, Array] = {}
        for rank, value in enumerate(values):
            if id(value) not in made:
                made[id(value)] = _shaken(node, value, (number // 2, node.id, rank), mirrored)
        return [made[id(value)] for value in values]

    return noisy


def _shaken(node: Node, value: Array, key: tuple[object, ...], mirrored: int) -> Array:
    by = NOISE * mirrored * signed(key_of("noise", *key), value.shape)
    if value.dtype.kind == "c":
        return value * (1.0 + by + 1j * NOISE * mirrored * signed(key_of("turn", *key), value.shape))
    return _lifted(node, value, bits(key_of("lift", *key), np.arange(value.size))) * (1.0 + by)
