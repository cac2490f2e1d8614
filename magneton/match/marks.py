"""Where the anchors lie in one side's graph.

``nearest`` walks forward once and tells, for each value, which anchors are met first on the way back.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from magneton.match.anchor import Anchor, Side, Spot
from magneton.match.held import held

CROWD = 16  # more nearest anchors than this tell nothing about where a value belongs

Near = frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Marks:
    """``anchor`` of each value that lies on one; ``roots`` are those that an operator computes afresh.

    ``held`` are values without an anchor that only hold what is known.
    """

    anchor: Mapping[int, int]
    roots: frozenset[int]
    held: frozenset[int]


def mark(side: Side, spots: Sequence[tuple[Spot, ...]], strays: frozenset[int] = frozenset()) -> Marks:
    """Single spots first: a part that is recognised by itself is marked as itself, not as the whole's.

    ``strays`` are roots that are left unmarked, with all that only lays them out anew.
    """
    by_spot: dict[Spot, int] = {}
    for wanted_single in (True, False):
        for index, parts in enumerate(spots):
            if (len(parts) == 1) is wanted_single:
                for spot in parts:
                    by_spot.setdefault(spot, index)
    anchor: dict[int, int] = {}
    for value, which in side.classes.of.items():
        index = by_spot.get(Spot(which=which, generation=side.classes.generation[value]))
        if index is not None:
            anchor[value] = index
    roots = frozenset(value for spot in by_spot for value in side.classes.roots[spot.which][spot.generation])
    for value in _led_astray(side, strays):
        anchor.pop(value, None)
    return Marks(anchor=anchor, roots=roots - strays, held=held(side.wiring, anchor))


def _led_astray(side: Side, strays: frozenset[int]) -> set[int]:
    """``strays`` and the members of their classes that are made of nothing else of the class."""
    of, wiring, found = side.classes.of, side.wiring, set(strays)
    roots = {v for which in {of[v] for v in strays} for spot in side.classes.roots[which] for v in spot}
    members = (v for which in sorted({of[v] for v in strays}) for v in side.classes.members[which])
    for value in members:
        if value in wiring.producer and value not in roots:
            kin = {v for v in wiring.inputs[wiring.producer[value]] if of.get(v) == of[value]}
            if kin and kin <= found:
                found.add(value)
    return found


def nearest(side: Side, marks: Marks, counts: Callable[[int], bool]) -> dict[int, Near | None]:
    """The nearest anchors that ``counts`` accepts, for each value; None where they are a crowd."""
    near: dict[int, Near | None] = {}
    nothing: Near = frozenset()

    def at(value: int) -> Near | None:
        index = marks.anchor.get(value)
        if index is None:
            return near.get(value, nothing)
        return frozenset((index,)) if counts(index) else nothing

    for read, written in zip(side.wiring.inputs, side.wiring.outputs, strict=True):
        found: Near | None = nothing
        for value in read:
            other = at(value)
            found = None if found is None or other is None else found | other
        if found is not None and len(found) > CROWD:
            found = None
        for value in written:
            near[value] = found
    return near


def spots_of(anchors: Sequence[Anchor]) -> tuple[list[tuple[Spot, ...]], list[tuple[Spot, ...]]]:
    return [anchor.baseline for anchor in anchors], [anchor.candidate for anchor in anchors]
