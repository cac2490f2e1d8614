"""What regions consume, the repair where both sides differ in it, and the test for cycles."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from magneton.match.anchor import Side
from magneton.match.marks import Marks
from magneton.match.reach import SINK, Reach
from magneton.match.unions import Unions

LONGEST_DETOUR = 4  # groups on a way around, between two that merge


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Laid:
    """One side laid out: where its anchors are and which region each operator is in."""

    side: Side
    marks: Marks
    reach: Reach


def consumed(laid: Laid, groups: Unions) -> dict[int, set[int]]:
    """Anchors that each region reads and does not compute itself."""
    read: dict[int, set[int]] = {}
    for at, region in enumerate(laid.reach.region):
        found = read.setdefault(region, set())
        for value in laid.side.wiring.inputs[at]:
            anchor = laid.marks.anchor.get(value)
            if anchor is not None and groups.find(anchor) != region:
                found.add(anchor)
    return read


def edges(laid: Laid) -> set[tuple[int, int]]:
    """(region, region that reads from it), sinks left out: nothing reads from them."""
    wiring, region = laid.side.wiring, laid.reach.region
    return {
        (region[at], region[reader])
        for at, written in enumerate(wiring.outputs)
        for value in written
        for reader in wiring.consumers.get(value, ())
        if region[at] != region[reader] and SINK not in (region[at], region[reader])
    }


def both_edges(baseline: Laid, candidate: Laid) -> set[tuple[int, int]]:
    """Of both sides on common groups; shared regions stay apart (the candidate's are numbered on)."""
    lowest = min(baseline.reach.region, default=SINK)

    def own(region: int) -> int:
        return region if region >= 0 else region + lowest

    return edges(baseline) | {(own(x), own(y)) for x, y in edges(candidate)}


def cycles(links: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Sets of regions that depend on one another."""
    links = sorted(links)
    names = sorted({end for link in links for end in link})
    if not names:
        return []
    index = {name: k for k, name in enumerate(names)}
    rows = np.array([index[x] for x, _ in links])
    columns = np.array([index[y] for _, y in links])
    graph = coo_array((np.ones(len(links)), (rows, columns)), shape=(len(names), len(names)))
    count, label = connected_components(graph.tocsr(), directed=True, connection="strong")
    if count == len(names):
        return []
    knots: dict[int, list[int]] = {}
    for name, which in zip(names, label.tolist(), strict=True):
        knots.setdefault(which, []).append(name)
    return [knot for knot in knots.values() if len(knot) > 1]


def repair(baseline: Laid, candidate: Laid, groups: Unions) -> bool:
    """Merge each pair of regions whose sides consume differently with the producers of the difference.

    False when nothing had to be merged. A merge takes along what lies between, or is not made where
    that is too much.
    """
    read_x, read_y = consumed(baseline, groups), consumed(candidate, groups)
    computed = set(baseline.reach.region) & set(candidate.reach.region)
    successors: dict[int, list[int]] = {}
    for x, y in sorted(both_edges(baseline, candidate)):
        successors.setdefault(x, []).append(y)
    before = groups.merges
    for region in sorted(computed):
        if region < 0:
            continue
        groups_x = {groups.find(anchor) for anchor in read_x[region]}
        groups_y = {groups.find(anchor) for anchor in read_y[region]}
        for other in sorted((groups_x ^ groups_y) & computed):
            between = _between(successors, other, region)
            if between is not None and all(group >= 0 for group in between):
                for group in (*between, other):
                    groups.union(region, group)
    return groups.merges != before


def _between(successors: Mapping[int, Sequence[int]], start: int, end: int) -> set[int] | None:
    """Everything on a path from ``start`` to ``end``; None where the paths are too long to take along."""
    layers = [{start}]
    parents: dict[int, set[int]] = {}
    while layers[-1] and len(layers) <= LONGEST_DETOUR + 1:
        following: set[int] = set()
        for node in layers[-1] - {end}:
            for successor in successors.get(node, ()):
                if successor not in parents and successor != end:
                    following.add(successor)
                parents.setdefault(successor, set()).add(node)
        layers.append(following)
    found: set[int] = set()
    waiting = [end]
    while waiting:
        new = parents.get(waiting.pop(), set()) - found - {start, end}
        found |= new
        waiting += new
    return found if len(found) <= LONGEST_DETOUR else None
