"""Give each operator to the anchor it works for: walk back from each anchor to the previous ones.

In: one side, where its anchors lie, and which anchors form one group. Out: for every operator, the
group of the anchors that its results reach first. An operator that reaches several groups

- glues them, if none of them depends on another on either side (queries, keys, values);
- becomes shared, if all it depends on are buffers, constants and integer inputs (masks, RoPE tables);
- belongs to the first of them otherwise, and where it only carries on what is known (a cache).

What only lays out an anchored value anew (views; copies too) belongs to its one consumer. Where there
are several it belongs to the producer, or, if it writes into memory that was there (a cache), to the
first of them. Operators whose results reach no anchor are sinks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from magneton.match.anchor import Side
from magneton.match.marks import Marks
from magneton.match.unions import Unions
from magneton.match.wiring import Wiring

SINK = -1
MOST_GLUED = 8  # operators that reach more groups than this do not glue them
FARTHEST = 4000  # operators looked at before two groups pass for ordered

Ordered = Callable[[Sequence[int]], bool]
Why = Literal[
    "computes",  # an anchored value
    "remakes",  # an anchored value, for several readers or not from it alone
    "writes-for-reader",  # an anchored value into memory that was there
    "reaches-one",
    "reaches-first",  # of several that depend on each other, or that read what it carries on
    "serves-several",  # settings only
    "reaches-nothing",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reach:
    """``region`` of each operator: a group (>= 0), SINK, or a shared region (<= -2)."""

    region: tuple[int, ...]
    why: tuple[Why, ...]  # each operator is there


def settle(
    sides: tuple[Side, Side],
    marks: tuple[Marks, Marks],
    groups: Unions,
    loners: frozenset[int] = frozenset(),
) -> tuple[Reach, Reach]:
    """Assign the operators of both sides, gluing ``groups`` until nothing more needs to be glued.

    The groups of the anchors in ``loners`` are glued only where one operator computes several.
    """
    while True:
        merges = groups.merges
        places = _places(sides[0], marks[0], groups), _places(sides[1], marks[1], groups)
        memo: dict[frozenset[int], bool] = {}

        def ordered(
            targets: Sequence[int],
            places: tuple[dict[int, list[int]], dict[int, list[int]]] = places,
            memo: dict[frozenset[int], bool] = memo,
        ) -> bool:
            key = frozenset(targets)
            if key not in memo:
                alone = {groups.find(anchor) for anchor in loners}
                memo[key] = (
                    len(key) > MOST_GLUED
                    or not alone.isdisjoint(key)
                    or any(
                        _depends(side, [place.get(g, []) for g in key])
                        for side, place in zip(sides, places, strict=True)
                    )
                )
            return memo[key]

        baseline = _Sweep(sides[0], marks[0], groups, places[0], ordered).run()
        candidate = _Sweep(sides[1], marks[1], groups, places[1], ordered).run()
        if groups.merges == merges:
            return baseline, candidate


def _places(side: Side, marks: Marks, groups: Unions) -> dict[int, list[int]]:
    """Where on one side each group is computed."""
    places: dict[int, list[int]] = {}
    for value in marks.roots:
        at = side.wiring.producer.get(value)
        if at is not None:
            places.setdefault(groups.find(marks.anchor[value]), []).append(at)
    return places


class _Sweep:
    """One walk backwards over one side. Every reader of a value is assigned before its producer."""

    def __init__(
        self, side: Side, marks: Marks, groups: Unions, places: dict[int, list[int]], ordered: Ordered
    ) -> None:
        self._wiring = side.wiring
        self._marks = marks
        self._groups = groups
        self._places = places
        self._ordered = ordered
        self._shared = Unions(0)
        self._region = [SINK] * len(side.wiring.operators)
        self._why: list[Why] = ["reaches-nothing"] * len(side.wiring.operators)

    def run(self) -> Reach:
        for at in reversed(range(len(self._region))):
            self._region[at], self._why[at] = self._assign(at)
        return Reach(region=tuple(map(self._current, self._region)), why=tuple(self._why))

    def _assign(self, at: int) -> tuple[int, Why]:
        wiring, anchor = self._wiring, self._marks.anchor
        written = wiring.outputs[at]
        produced = {self._groups.find(anchor[v]) for v in written if v in self._marks.roots}
        if produced:
            return _glue(self._groups, produced), "computes"
        readers = (c for v in written for c in wiring.consumers.get(v, ()))
        targets = {self._current(self._region[c]) for c in readers} - {SINK}
        own = next((self._groups.find(anchor[v]) for v in written if v in anchor), SINK)
        if own in self._places and (len(targets) != 1 or not _only_lays_out(self._wiring, self._marks, at)):
            written_for = sorted(target for target in targets if target >= 0)
            if wiring.operators[at].mutated and written_for:
                return self._first(written_for), "writes-for-reader"
            return own, "remakes"
        static = all(v in wiring.static for v in written)
        several = len(targets) > 1 and min(targets) >= 0 and not static
        if several and all(v in self._marks.held for v in written):
            return self._first(sorted(targets)), "reaches-first"
        return self._resolve(targets, static)

    def _current(self, assigned: int) -> int:
        if assigned >= 0:
            return self._groups.find(assigned)
        return assigned if assigned == SINK else -2 - self._shared.find(-2 - assigned)

    def _resolve(self, targets: set[int], static: bool) -> tuple[int, Why]:
        if not targets:
            return SINK, "reaches-nothing"
        if len(targets) == 1:
            return next(iter(targets)), "reaches-one"
        if static or min(targets) < SINK:
            whole = self._shared.add()
            for target in targets:
                if target < SINK:
                    whole = self._shared.union(whole, -2 - target)
            return -2 - whole, "serves-several"
        if self._ordered(sorted(targets)):
            return self._first(sorted(targets)), "reaches-first"
        return _glue(self._groups, targets), "reaches-one"

    def _first(self, targets: Sequence[int]) -> int:
        return min(targets, key=lambda group: min(self._places.get(group, [len(self._region)])))


def _only_lays_out(wiring: Wiring, marks: Marks, at: int) -> bool:
    """Whether an operator makes of an anchored value that value again, from nothing else.

    What was in the memory before it was overwritten does not count, nor does a tensor without elements
    (a cache that is still empty).
    """
    values, written = wiring.profile.values, wiring.outputs[at]
    anchors = {marks.anchor[v] for v in written if v in marks.anchor}
    memory = {values[v].storage_id for v in written}
    return all(
        marks.anchor.get(v) in anchors or values[v].storage_id in memory or 0 in values[v].shape
        for v in wiring.inputs[at]
    )


def _glue(groups: Unions, targets: set[int]) -> int:
    first, *others = sorted(targets)
    for other in others:
        first = groups.union(first, other)
    return groups.find(first)


def _depends(side: Side, places: Sequence[Sequence[int]]) -> bool:
    """Whether a path leads from one of the places to another; beyond a bounded search, yes."""
    wiring = side.wiring
    last = max((at for place in places for at in place), default=0)
    seen_in_all = 0
    for place in places:
        others = {at for other in places if other is not place for at in other}
        seen, waiting = set(place), list(place)
        while waiting:
            at = waiting.pop()
            for value in wiring.outputs[at]:
                for consumer in wiring.consumers.get(value, ()):
                    if consumer in others:
                        return True
                    if consumer < last and consumer not in seen:
                        seen.add(consumer)
                        waiting.append(consumer)
        seen_in_all += len(seen)
        if seen_in_all > FARTHEST:
            return True
    return False
