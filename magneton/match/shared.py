"""Shared side inputs: masks and tables that serve several regions and must not glue them together.

A shared region of one side pairs with that of the other which serves mostly the same groups. What one side
builds at once the other may build piece by piece (a table for all steps, one in each): regions that serve
parts of what a single one of the other side serves pair with it together. Those without a counterpart are
left over: the other side needs no such table, or has it ready.
"""

from collections.abc import Mapping, Sequence

from magneton.match.frontier import Laid, edges
from magneton.match.reach import SINK

ENOUGH_COMMON = 0.5  # of the groups that either of the two serves

Served = Mapping[int, set[int]]  # the groups that each shared region serves
Counterparts = tuple[tuple[int, ...], tuple[int, ...]]  # of the baseline, of the candidate; one of them alone


def pair_shared(baseline: Laid, candidate: Laid) -> tuple[Counterparts, ...]:
    """Shared regions (numbered on each side) that stand for each other."""
    served = _served(baseline), _served(candidate)
    found = [([x], [y]) for x, y in _best(*served)]
    for side in (0, 1):
        _add_parts(found, served, side)
    return tuple((tuple(xs), tuple(ys)) for xs, ys in found)


def _best(served_x: Served, served_y: Served) -> list[tuple[int, int]]:
    """Those that are each other's best counterpart."""
    common = {
        (x, y): len(served_x[x] & served_y[y]) / len(served_x[x] | served_y[y])
        for x, ys in _meeting(served_x, served_y).items()
        for y in ys
    }
    found: list[tuple[int, int]] = []
    for (x, y), _ in sorted(common.items(), key=lambda item: (-item[1], -item[0][0], -item[0][1])):
        free = all(x != one and y != other for one, other in found)
        if free and common[x, y] >= ENOUGH_COMMON:
            found.append((x, y))
    return found


def _add_parts(found: list[tuple[list[int], list[int]]], served: tuple[Served, Served], side: int) -> None:
    """Put each region of ``side`` that is alone beside the only one that serves all it serves."""
    taken = {region for pair in found for region in pair[side]}
    for part in sorted(served[side].keys() - taken, reverse=True):
        hosts = [host for host, groups in served[1 - side].items() if served[side][part] <= groups]
        if len(hosts) != 1:
            continue
        pair = next((pair for pair in found if hosts[0] in pair[1 - side]), None)
        if pair is None:
            pair = ([part], hosts) if side == 0 else (hosts, [part])
            found.append(pair)
        elif len(pair[1 - side]) == 1:
            pair[side].append(part)


def _served(laid: Laid) -> dict[int, set[int]]:
    served: dict[int, set[int]] = {}
    for region, reader in edges(laid):
        if region < SINK and reader >= 0:
            served.setdefault(region, set()).add(reader)
    return served


def _meeting(served_x: Mapping[int, set[int]], served_y: Mapping[int, set[int]]) -> dict[int, Sequence[int]]:
    by_group: dict[int, list[int]] = {}
    for y, groups in served_y.items():
        for group in groups:
            by_group.setdefault(group, []).append(y)
    return {x: sorted({y for g in groups for y in by_group.get(g, ())}) for x, groups in served_x.items()}
