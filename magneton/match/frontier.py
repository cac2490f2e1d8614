"""What regions consume, and the repair where both sides differ in it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from magneton.match.anchor import Side
from magneton.match.composites import concatenations
from magneton.match.marks import Marks
from magneton.match.memory import read_beneath
from magneton.match.quotient import Quotient
from magneton.match.reach import SINK, Reach
from magneton.match.unions import Unions


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


def repair(
    baseline: Laid,
    candidate: Laid,
    groups: Unions,
    loners: frozenset[int],
    atoms: Mapping[int, frozenset[int]],
) -> bool:
    """Merge each pair of regions whose sides consume differently with what makes the difference.

    Where only one side reads ``d``, the other may read it through ``e``, which is computed from ``d`` on
    the way: then ``e`` joins. Else the producer of ``d`` does. A merge takes along what lies between, or
    is not made where that is too much, or for ``loners``. False when nothing had to be merged. ``atoms`` are
    the ``concatenations`` of both sides, which no merge changes.
    """
    reads = consumed(baseline, groups), consumed(candidate, groups)
    computed = {r for r in set(baseline.reach.region) & set(candidate.reach.region) if r >= 0}
    computed -= {groups.find(anchor) for anchor in loners}
    quotient = Quotient(both_edges(baseline, candidate), groups)
    before = groups.merges
    joins: set[tuple[int, int]] = set()
    for region in computed:
        there = [_group_atoms(read[region], atoms, groups) - {region} for read in reads]
        for only, read in ((there[0] - there[1], reads[1]), (there[1] - there[0], reads[0])):
            direct = sorted({groups.find(anchor) for anchor in read[region]} & computed)
            for missing in only:
                through = [g for g in direct if missing in _group_atoms(read[g], atoms, groups)]
                joins |= {(other, region) for other in through[:1] or {missing} & computed}
    for source, reader in _leaks(baseline) | _leaks(candidate):
        if {groups.find(source), groups.find(reader)} <= computed:
            joins.add((source, reader))
    for source, reader in sorted(joins):
        quotient.join(source, reader)
    return groups.merges != before


def _leaks(laid: Laid) -> set[tuple[int, int]]:
    """(region, region that reads from it a value which no anchor speaks of), but for settings and what only
    holds what is known."""
    wiring, region, anchor = laid.side.wiring, laid.reach.region, laid.marks.anchor
    return {
        (region[at], region[reader])
        for at, written in enumerate(wiring.outputs)
        for value in written
        if value not in anchor and value not in wiring.static and value not in laid.marks.held
        for reader in wiring.consumers.get(value, ())
        if region[at] != region[reader] and min(region[at], region[reader]) >= 0
    }


def misfits(baseline: Laid, candidate: Laid, groups: Unions) -> tuple[frozenset[int], ...]:
    """For each region whose sides still consume differently, the computed anchors that differ."""
    reads = consumed(baseline, groups), consumed(candidate, groups)
    atoms = concatenations((baseline.side, candidate.side), (baseline.marks, candidate.marks))
    computed = {laid.marks.anchor[v] for laid in (baseline, candidate) for v in _computed_roots(laid)}
    found: list[frozenset[int]] = []
    for region in sorted(reads[0].keys() & reads[1].keys()):
        there = [{atom for k in read[region] for atom in atoms.get(k, (k,))} for read in reads]
        if region >= 0 and (apart := (there[0] ^ there[1]) & computed):
            found.append(frozenset(apart))
    return tuple(found)


def _computed_roots(laid: Laid) -> Iterable[int]:
    return (value for value in laid.marks.roots if value in laid.side.wiring.producer)


def _group_atoms(anchors: Iterable[int], atoms: Mapping[int, frozenset[int]], groups: Unions) -> set[int]:
    return {groups.find(atom) for anchor in anchors for atom in atoms.get(anchor, (anchor,))}
