"""Pair value classes of two sides: by sketch, duplicates by agreement of neighbours and by order.

Classes that are close to exactly one class of the other side pair outright, as do those for which one
is nearer than every other by a clear factor. What is left (equal layers in low precision, a mean and
the mean plus epsilon) pairs where more of its inputs and outputs are already paired with each other than
with any rival, and at last, where both sides have equally many, in order of execution.

Where values drift farther than equal ones may be apart by themselves (low precision, deep models), what
is still unpaired is paired by its neighbours alone, as far as the drift allows.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from magneton.match.anchor import Anchor, Side, Spot
from magneton.match.candidates import close_pairs
from magneton.match.distance import SAME_SIDE, loosened, threshold
from magneton.match.model import Evidence
from magneton.match.unions import Unions
from magneton.profile.distance import Reals, Rows

CLEARLY = 4.0  # the nearest must be so many times nearer than the next
ROUNDS = 4
DRIFTED_ROUNDS = 32  # each round carries agreement one operator farther
MOST_DRIFTED = 8  # neighbours of a class that are looked at

Edge = tuple[int, int]  # class of the baseline, class of the candidate
Score = Callable[[Edge], float]


def pair_values(baseline: Side, candidate: Side) -> tuple[tuple[Anchor, ...], frozenset[int], frozenset[int]]:
    """Anchors by sketch, and the classes of either side that several others would fit."""
    mate: dict[int, int] = {}
    evidence: dict[int, Evidence] = {}

    def accept(edges: Iterable[Edge], because: Evidence) -> bool:
        new = [(x, y) for x, y in edges if x not in mate]
        mate.update(new)
        evidence.update((x, because) for x, _ in new)
        return bool(new)

    def accept_agreeing(edges: Mapping[Edge, float], rounds: int) -> None:
        for _ in range(rounds):
            score = _agreement(neighbours, mate)
            scored = {edge: score(edge) for edge in _open(edges, mate)}
            agreeing = [edge for edge in scored if scored[edge] > 0]
            if not accept(_mutual(agreeing, lambda edge, s=scored: 1.0 / s[edge], 1.0), "context"):
                return

    near = _close_classes(baseline, candidate)
    neighbours = _neighbours(baseline), _neighbours(candidate)
    accept(_mutual(near, lambda edge: max(near[edge], SAME_SIDE / CLEARLY), CLEARLY), "value")
    accept_agreeing(near, ROUNDS)
    apart = near
    if drifted := _drifted_classes(baseline, candidate, mate):
        apart = near | drifted
        accept_agreeing(apart, DRIFTED_ROUNDS)
    accept(_in_order(_open(near, mate)), "order")

    left = _open(near, mate)
    found = tuple(
        anchor
        for x, y in sorted(mate.items())
        for anchor in pair_generations(baseline, x, candidate, y, evidence[x], apart[x, y])
    )
    return found, frozenset(x for x, _ in left), frozenset(y for _, y in left)


def pair_generations(
    baseline: Side, x: int, candidate: Side, y: int, evidence: Evidence, distance: float
) -> tuple[Anchor, ...]:
    """Generations pair one by one while both sides have them; the rest are no boundaries."""
    both = min(len(baseline.classes.roots[x]), len(candidate.classes.roots[y]))
    return tuple(
        Anchor(
            baseline=(Spot(which=x, generation=k),),
            candidate=(Spot(which=y, generation=k),),
            evidence=evidence,
            distance=distance,
        )
        for k in range(both)
    )


def _close_classes(baseline: Side, candidate: Side) -> dict[Edge, float]:
    classes_x, rows_x = _first_values(baseline, _recognisable(baseline))
    classes_y, rows_y = _first_values(candidate, _recognisable(candidate))
    at_x, at_y, apart = close_pairs(
        baseline.wiring.profile.sketches, rows_x, candidate.wiring.profile.sketches, rows_y
    )
    return {
        (classes_x[x], classes_y[y]): float(d)
        for x, y, d in sorted(zip(at_x.tolist(), at_y.tolist(), apart.tolist(), strict=True))
    }


def _drifted_classes(baseline: Side, candidate: Side, mate: Mapping[int, int]) -> dict[Edge, float]:
    """Unpaired classes that are as near to each other as their drift makes equal ones."""
    taken = set(mate.values())
    classes_x, rows_x = _first_values(baseline, [c for c in _recognisable(baseline) if c not in mate])
    classes_y, rows_y = _first_values(candidate, [c for c in _recognisable(candidate) if c not in taken])
    drift_x, drift_y = baseline.wiring.drift[rows_x], candidate.wiring.drift[rows_y]
    if not (_drifts_away(baseline, rows_x) or _drifts_away(candidate, rows_y)):
        return {}
    most = max(drift_x.max(initial=0.0), drift_y.max(initial=0.0))
    sketches_x, sketches_y = baseline.wiring.profile.sketches, candidate.wiring.profile.sketches

    def limit(count: NDArray[np.int64]) -> Reals:
        return loosened(count, np.full(count.shape, most))

    at_x, at_y, apart = close_pairs(sketches_x, rows_x, sketches_y, rows_y, limit, most=MOST_DRIFTED)
    allowed = loosened(sketches_x.count[rows_x[at_x]], np.maximum(drift_x[at_x], drift_y[at_y]))
    near = apart <= allowed
    found = zip(at_x[near].tolist(), at_y[near].tolist(), apart[near].tolist(), strict=True)
    return {(classes_x[x], classes_y[y]): float(off) for x, y, off in sorted(found)}


def _drifts_away(side: Side, rows: Rows) -> bool:
    """Whether any of these values drifts farther than equal ones may be apart by themselves."""
    count = side.wiring.profile.sketches.count[rows]
    return bool(np.any(loosened(count, side.wiring.drift[rows]) > threshold(count)))


def _recognisable(side: Side) -> list[int]:
    return [c for c, high in enumerate(side.classes.high_entropy) if high]


def _first_values(side: Side, classes: Sequence[int]) -> tuple[Sequence[int], Rows]:
    return classes, np.array([side.classes.members[c][0] for c in classes], dtype=np.int64)


def _open(apart: Mapping[Edge, float], mate: Mapping[int, int]) -> list[Edge]:
    taken = set(mate.values())
    return [(x, y) for x, y in apart if x not in mate and y not in taken]


def _mutual(edges: Iterable[Edge], cost: Score, factor: float) -> list[Edge]:
    """Edges that cost less, by more than ``factor``, than any other edge at either of their ends."""
    best: dict[tuple[str, int], tuple[float, float]] = {}
    costs = {edge: cost(edge) for edge in edges}
    for (x, y), price in costs.items():
        for end in (("baseline", x), ("candidate", y)):
            first, second = best.get(end, (np.inf, np.inf))
            best[end] = (price, first) if price < first else (first, min(second, price))
    return [
        (x, y)
        for (x, y), price in costs.items()
        if all(
            price == best[end][0] and price * factor < best[end][1]
            for end in (("baseline", x), ("candidate", y))
        )
    ]


def _neighbours(side: Side) -> Callable[[int], tuple[frozenset[int], frozenset[int]]]:
    """The classes that the producers of a class read, and those that its consumers write."""
    of, wiring = side.classes.of, side.wiring

    def around(which: int) -> tuple[frozenset[int], frozenset[int]]:
        members = side.classes.members[which]
        produced = [wiring.producer[v] for v in members if v in wiring.producer]
        read = {of[v] for at in produced for v in wiring.inputs[at] if v in of}
        consumed = [at for v in members for at in wiring.consumers.get(v, ())]
        written = {of[v] for at in consumed for v in wiring.outputs[at] if v in of}
        return frozenset(read - {which}), frozenset(written - {which})

    return around


def _agreement(
    neighbours: Sequence[Callable[[int], tuple[frozenset[int], ...]]], mate: Mapping[int, int]
) -> Score:
    """How many neighbours are paired with each other, less those that are paired elsewhere."""
    around_x, around_y = neighbours

    def score(edge: Edge) -> float:
        total = 0
        for near_x, near_y in zip(around_x(edge[0]), around_y(edge[1]), strict=True):
            mates = {mate[c] for c in near_x if c in mate}
            total += len(mates & near_y) - len(mates - near_y)
        return total

    return score


def _in_order(edges: Sequence[Edge]) -> list[Edge]:
    """Within each knot of rivals, the k-th with the k-th, where both sides have equally many."""
    xs = {x: k for k, x in enumerate(sorted({x for x, _ in edges}))}
    ys = {y: k + len(xs) for k, y in enumerate(sorted({y for _, y in edges}))}
    knots = Unions(len(xs) + len(ys))
    for x, y in edges:
        knots.union(xs[x], ys[y])
    sides: dict[int, tuple[list[int], list[int]]] = {}
    for x, k in xs.items():
        sides.setdefault(knots.find(k), ([], []))[0].append(x)
    for y, k in ys.items():
        sides.setdefault(knots.find(k), ([], []))[1].append(y)
    possible = set(edges)
    return [
        edge
        for left, right in sides.values()
        if len(left) == len(right) and all(pair in possible for pair in zip(left, right, strict=True))
        for edge in zip(left, right, strict=True)
    ]
