"""The graph of regions: which depends on which, whether in circles, and what a merge takes along."""

from collections.abc import Iterable

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from magneton.match.unions import Unions

MOST_BETWEEN = 4  # groups that may lie between two that merge; they merge too
MOST_SEEN = 512  # groups looked at on the way; where there are more, there are more than that between

Link = tuple[int, int]  # (region, region that reads from it)


def cycles(links: Iterable[Link]) -> list[list[int]]:
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


class Quotient:
    """Regions with their readers, kept up to date while groups merge."""

    def __init__(self, links: Iterable[Link], groups: Unions) -> None:
        self._groups = groups
        self._readers: dict[int, set[int]] = {}
        self._sources: dict[int, set[int]] = {}
        for region, reader in links:
            self._readers.setdefault(region, set()).add(reader)
            self._sources.setdefault(reader, set()).add(region)
        self._lowest = _levels(self._readers, self._sources)
        self._highest = dict(self._lowest)

    def join(self, one: int, other: int) -> None:
        """Merge two groups and what lies between them, unless that is too much or shared."""
        one, other = self._now(one), self._now(other)
        if one == other:
            return
        first, last = sorted((one, other), key=lambda region: self._lowest.get(region, 0))
        between = self._between(first, last)
        if between is not None and all(region >= 0 for region in between):
            for region in (*between, last):
                self._merge(first, region)

    def _now(self, region: int) -> int:
        return self._groups.find(region) if region >= 0 else region

    def _merge(self, one: int, other: int) -> None:
        one, other = self._now(one), self._now(other)
        kept = self._groups.union(one, other)
        for links in (self._readers, self._sources):
            links[kept] = links.get(one, set()) | links.get(other, set())
        self._lowest[kept] = min(self._lowest.get(one, 0), self._lowest.get(other, 0))
        self._highest[kept] = max(self._highest.get(one, 0), self._highest.get(other, 0))

    def _between(self, first: int, last: int) -> set[int] | None:
        """Regions on any path from ``first`` to ``last``, or None where they are too many."""
        after = self._closure(self._readers, first, last)
        if after is None:
            return None
        if last not in after:
            return set()
        before = self._closure(self._sources, last, first)
        found = None if before is None else after & before - {first, last}
        return found if found is not None and len(found) <= MOST_BETWEEN else None

    def _closure(self, links: dict[int, set[int]], start: int, end: int) -> set[int] | None:
        """What is reached from ``start`` without going through ``end`` or leaving the levels between.

        None where that is more than is worth looking at.
        """
        low = min(self._lowest.get(start, 0), self._lowest.get(end, 0))
        high = max(self._highest.get(start, 0), self._highest.get(end, 0))
        seen: set[int] = set()
        waiting = [start]
        while waiting:
            for linked in links.get(waiting.pop(), ()):
                region = self._now(linked)
                apart = self._highest.get(region, 0) < low or self._lowest.get(region, 0) > high
                if region not in seen and region != start and not apart:
                    seen.add(region)
                    if len(seen) > MOST_SEEN:
                        return None
                    waiting += [region] if region != end else []
        return seen


def _levels(readers: dict[int, set[int]], sources: dict[int, set[int]]) -> dict[int, int]:
    """The longest way to each region; those in a circle stay at the level they were left at."""
    missing = {region: len(found) for region, found in sources.items()}
    level = dict.fromkeys((*readers, *sources), 0)
    waiting = [region for region in level if region not in missing]
    while waiting:
        region = waiting.pop()
        for reader in readers.get(region, ()):
            level[reader] = max(level[reader], level[region] + 1)
            missing[reader] -= 1
            if not missing[reader]:
                waiting.append(reader)
    return level
