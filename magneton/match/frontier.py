"""What regions consume, the repair where both sides differ in it, and the test for cycles."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from magneton.match.anchor import Side
from magneton.match.composites import concatenations
from magneton.match.marks import Marks
from magneton.match.memory import read_beneath
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
    anchor = laid.marks.anchor
    beneath = read_beneath(laid.side, anchor)
    read: dict[int, set[int]] = {}
    for at, region in enumerate(laid.reach.region):
        found = read.setdefault(region, set())
        found.update(anchor[value] for value in laid.side.wiring.inputs[at] if value in anchor)
        found.update(beneath.get(at, ()))
    for region, found in read.items():
        found.difference_update([index for index in found if groups.find(index) == region])
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
    """Merge each pair of regions whose sides consume differently with what makes the difference.

    Where only one side reads ``d``, the other may read it through ``e``, which is computed from ``d`` on
    the way: then ``e`` joins. Else the producer of ``d`` does. A merge takes along what lies between, or
    is not made where that is too much. False when nothing had to be merged.
    """
    reads = consumed(baseline, groups), consumed(candidate, groups)
    atoms = concatenations((baseline.side, candidate.side), (baseline.marks, candidate.marks))
    computed = {r for r in set(baseline.reach.region) & set(candidate.reach.region) if r >= 0}
    successors: dict[int, list[int]] = {}
    for x, y in sorted(both_edges(baseline, candidate)):
        successors.setdefault(x, []).append(y)
    before = groups.merges
    for region in sorted(computed):
        there = [_group_atoms(read[region], atoms, groups) - {region} for read in reads]
        for only, read in ((there[0] - there[1], reads[1]), (there[1] - there[0], reads[0])):
            direct = sorted({groups.find(anchor) for anchor in read[region]} & computed)
            for missing in sorted(only):
                through = [g for g in direct if missing in _group_atoms(read[g], atoms, groups)]
                for other in through[:1] or sorted({missing} & computed):
                    _join(groups, successors, other, region)
    return groups.merges != before


def _group_atoms(anchors: Iterable[int], atoms: Mapping[int, frozenset[int]], groups: Unions) -> set[int]:
    return {groups.find(atom) for anchor in anchors for atom in atoms.get(anchor, (anchor,))}


def _join(groups: Unions, successors: Mapping[int, Sequence[int]], other: int, region: int) -> None:
    between = _between(successors, other, region)
    if between is not None and all(group >= 0 for group in between):
        for group in (*between, other):
            groups.union(region, group)


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
