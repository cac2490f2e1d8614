"""Shared side inputs: masks and tables that serve several regions and must not glue them together.

A shared region of one side pairs with that of the other which serves mostly the same groups. Those
without a counterpart are left over: the other side needs no such table, or has it ready.
"""

from collections.abc import Mapping, Sequence

from magneton.match.frontier import Laid, edges
from magneton.match.reach import SINK

ENOUGH_COMMON = 0.5  # of the groups that either of the two serves


def pair_shared(baseline: Laid, candidate: Laid) -> tuple[tuple[int, int], ...]:
    """Shared regions (numbered on each side) that are each other's best counterpart."""
    served_x, served_y = _served(baseline), _served(candidate)
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
    return tuple(found)


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
