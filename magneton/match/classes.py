"""Value classes: values of one side that are rearrangements of each other.

In: the wiring of one phase. Out: a class for every recognisable value. Two values share a class when
pure layout or a cast to another floating-point type links them, or when both hold many different numbers
and their sketches agree as closely as one run agrees with itself. The tolerance between sides would merge
a mean with the mean plus epsilon.

Within a class, values come in *generations*. A root is a value whose producer reads no member; a root
that descends from a member (the crop of a pad) starts the next generation, and so does the sum of a
member and something computed from it (a block that adds nothing). What layout makes of a value stays in
its generation.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from magneton.match.candidates import close_pairs
from magneton.match.distance import SAME_SIDE, anchors, threshold
from magneton.match.unions import Unions
from magneton.match.wiring import Wiring
from magneton.profile.distance import Rows, distances, kind_keys, mean_features
from magneton.profile.sketches import Sketches

ROUNDING = SAME_SIDE / 100  # finer than what may differ, coarser than the order of a sum


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Classes:
    """``of`` and ``generation`` cover the wiring's values; classes are numbered by first appearance."""

    of: Mapping[int, int]
    generation: Mapping[int, int]
    members: tuple[tuple[int, ...], ...]  # class -> values, in order of appearance
    roots: tuple[tuple[tuple[int, ...], ...], ...]  # class -> generation -> values
    high_entropy: tuple[bool, ...]


def classify(wiring: Wiring) -> Classes:
    sketches = wiring.profile.sketches
    rank = {value: k for k, value in enumerate(wiring.values)}
    unions = Unions(len(rank))
    can_anchor = anchors(sketches)
    rows = np.array([value for value in wiring.values if can_anchor[value]], dtype=np.int64)
    for one, other in _equal_values(sketches, rows):
        unions.union(rank[one], rank[other])
    _link_layouts(wiring, rank, unions, can_anchor)
    _link_casts(wiring, rank, unions)

    number: dict[int, int] = {}
    of = {value: number.setdefault(unions.find(k), len(number)) for value, k in rank.items()}
    members: list[list[int]] = [[] for _ in number]
    for value, which in of.items():
        members[which].append(value)
    generation, roots = _generations(wiring, of, len(members))
    return Classes(
        of=of,
        generation=generation,
        members=tuple(map(tuple, members)),
        roots=roots,
        high_entropy=tuple(bool(can_anchor[values[0]]) for values in members),
    )


def _equal_values(sketches: Sketches, rows: Rows) -> list[tuple[int, int]]:
    """Pairs of equal values that link all that are equal: first what rounds alike, then neighbours."""
    cos, sin = mean_features(sketches, rows)
    with np.errstate(over="ignore"):  # sketches from elsewhere may hold any number
        rounded = np.round(np.column_stack([cos, sin]) / ROUNDING)
    keys = np.column_stack([kind_keys(sketches, rows), sketches.first[rows], rounded])
    _, first, of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    alike = rows[first][of.reshape(-1)]
    near = distances(sketches, alike, sketches, rows) <= SAME_SIDE
    apart = np.union1d(rows[first], rows[~near])
    one, other, _ = close_pairs(sketches, apart, sketches, apart, limit=_same_side)
    return [
        *zip(alike[near].tolist(), rows[near].tolist(), strict=True),
        *zip(apart[one].tolist(), apart[other].tolist(), strict=True),
    ]


def _same_side(count: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.full(count.shape, SAME_SIDE)


def _link_layouts(wiring: Wiring, rank: Mapping[int, int], unions: Unions, can_anchor: np.ndarray) -> None:
    """What has too few different numbers to be recognised is linked along views and copies only."""
    known = wiring.profile.sketches.known
    links = [
        (read[0], value)
        for read, written in zip(wiring.inputs, wiring.outputs, strict=True)
        if len(read) == 1 and read[0] in rank
        for value in written
        if value in rank and not can_anchor[value] and known[value]
    ]
    _link(wiring.profile.sketches, links, rank, unions, _same_side)


def _link_casts(wiring: Wiring, rank: Mapping[int, int], unions: Unions) -> None:
    """Another floating-point type holds the same values, as well as it can."""
    values = wiring.profile.values
    links = [
        (read[0], written[0])
        for read, written in zip(wiring.inputs, wiring.outputs, strict=True)
        if len(read) == len(written) == 1
        and read[0] in rank
        and written[0] in rank
        and values[read[0]].dtype != values[written[0]].dtype
        and all("float" in values[v].dtype for v in (*read, *written))
    ]
    _link(wiring.profile.sketches, links, rank, unions, threshold)


def _link(
    sketches: Sketches,
    links: Sequence[tuple[int, int]],
    rank: Mapping[int, int],
    unions: Unions,
    limit: Callable[[NDArray[np.int64]], NDArray[np.float64]],
) -> None:
    """Unite the ends of those ``links`` that are no farther apart than ``limit`` of their count."""
    sources, results = np.array(links, dtype=np.int64).reshape(-1, 2).T
    near = distances(sketches, sources, sketches, results) <= limit(sketches.count[sources])
    for source, result in zip(sources[near].tolist(), results[near].tolist(), strict=True):
        unions.union(rank[source], rank[result])


def _generations(
    wiring: Wiring, of: Mapping[int, int], classes: int
) -> tuple[Mapping[int, int], tuple[tuple[tuple[int, ...], ...], ...]]:
    repeated = _repeated(wiring, of, classes)
    lineage: dict[int, int] = {}  # value -> bits of the repeated classes it descends from
    generation: dict[int, int] = {}
    roots: list[list[list[int]]] = [[] for _ in range(classes)]

    def settle(value: int, read: Sequence[int], heritage: int) -> None:
        which = of[value]
        bit = repeated.get(which, 0)
        siblings = [generation[v] for v in read if of.get(v) == which]
        strangers = (lineage.get(v, 0) for v in read if of.get(v) != which)
        if siblings and not any(bit & line for line in strangers):
            generation[value] = max(siblings)
        else:
            generation[value] = len(roots[which]) if heritage & bit else 0
            while len(roots[which]) <= generation[value]:
                roots[which].append([])
            roots[which][generation[value]].append(value)
        lineage[value] = heritage | bit

    for value in wiring.values:
        if value not in wiring.producer:
            settle(value, (), 0)
    for read, written in zip(wiring.inputs, wiring.outputs, strict=True):
        heritage = 0
        for value in read:
            heritage |= lineage.get(value, 0)
        for value in written:
            if value in of:
                settle(value, read, heritage)
            else:
                lineage[value] = heritage
    return generation, tuple(tuple(map(tuple, kept)) for kept in roots)


def _repeated(wiring: Wiring, of: Mapping[int, int], classes: int) -> dict[int, int]:
    """A bit for each class that may have several roots: only there does descent have to be followed."""
    count = [0] * classes
    for value in wiring.values:
        at = wiring.producer.get(value)
        read = () if at is None else wiring.inputs[at]
        if len(read) != 1 or of.get(read[0]) != of[value]:
            count[of[value]] += 1
    return {which: 1 << k for k, which in enumerate(c for c in range(classes) if count[c] > 1)}
