"""Give each operator to the anchor it works for: walk back from each anchor to the previous ones.

In: one side, where its anchors lie, and which anchors form one group. Out: for every operator, the
group of the anchors that its results reach first. An operator that reaches several groups

- glues them, if none of them depends on another on either side (queries, keys, values);
- becomes shared, if all it depends on are buffers, constants and integer inputs (masks, RoPE tables);
- belongs to the first of them otherwise.

What only lays out an anchored value anew (views; copies too) belongs to its one consumer, or to the
producer where there are several. Operators whose results reach no anchor are sinks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from magneton.match.anchor import Side
from magneton.match.marks import Marks
from magneton.match.unions import Unions

SINK = -1
MOST_GLUED = 8  # operators that reach more groups than this do not glue them
FARTHEST = 4000  # operators looked at before two groups pass for ordered

Ordered = Callable[[Sequence[int]], bool]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reach:
    """``region`` of each operator: a group (>= 0), SINK, or a shared region (<= -2)."""

    region: tuple[int, ...]


def settle(sides: tuple[Side, Side], marks: tuple[Marks, Marks], groups: Unions) -> tuple[Reach, Reach]:
    """Assign the operators of both sides, gluing ``groups`` until nothing more needs to be glued."""
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
                memo[key] = len(key) > MOST_GLUED or any(
                    _depends(side, [place.get(g, []) for g in key])
                    for side, place in zip(sides, places, strict=True)
                )
            return memo[key]

        baseline = _sweep(sides[0], marks[0], groups, places[0], ordered)
        candidate = _sweep(sides[1], marks[1], groups, places[1], ordered)
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


def _sweep(side: Side, marks: Marks, groups: Unions, places: dict[int, list[int]], ordered: Ordered) -> Reach:
    wiring = side.wiring
    region = [SINK] * len(wiring.operators)
    shared = Unions(0)

    def current(assigned: int) -> int:
        if assigned >= 0:
            return groups.find(assigned)
        return assigned if assigned == SINK else -2 - shared.find(-2 - assigned)

    def resolve(targets: set[int], static: bool) -> int:
        if not targets:
            return SINK
        if len(targets) == 1:
            return next(iter(targets))
        if static or min(targets) < SINK:
            whole = shared.add()
            for target in targets:
                if target < SINK:
                    whole = shared.union(whole, -2 - target)
            return -2 - whole
        if ordered(sorted(targets)):
            return min(targets, key=lambda group: min(places.get(group, [len(region)])))
        return _glue(groups, targets)

    for at in reversed(range(len(region))):
        written = wiring.outputs[at]
        produced = {groups.find(marks.anchor[v]) for v in written if v in marks.roots}
        if produced:
            region[at] = _glue(groups, produced)
            continue
        targets = {current(region[c]) for v in written for c in wiring.consumers.get(v, ())} - {SINK}
        own = next((groups.find(marks.anchor[v]) for v in written if v in marks.anchor), SINK)
        if own in places and (len(set(wiring.inputs[at])) > 1 or len(targets) != 1):
            region[at] = own
        else:
            region[at] = resolve(targets, all(v in wiring.static for v in written))
    return Reach(region=tuple(map(current, region)))


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
