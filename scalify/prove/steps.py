"""What each rule concludes from a note of it, tried at places.

A step looks its operations up in the terms, lets the rule conclude again, and then compares, with maps as
plain functions, where the candidate's and the baseline's operation read: at corners and at random places, and
for folds of moderate length at every one.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod

import numpy as np

from scalify.layout.maps import IndexMap
from scalify.layout.views import Partial, View
from scalify.normalize.terms import Access, TermId, combination
from scalify.prove.certificate import text
from scalify.prove.certificate import whole as number
from scalify.prove.established import Established, Rejected
from scalify.prove.places import Points, all_points, are_inside, moved, points_of, read_at
from scalify.prove.rules.counterpart import Reading, concluded, joint
from scalify.prove.rules.pieces import assembled, completed, piece, united
from scalify.prove.rules.ranks import over_ranks, owned, owners
from scalify.prove.rules.scales import scaled, unscaled

MOST_ENUMERATED = 4_096
"""Folds of up to so many places are counted one by one; longer ones are tried at sampled places only."""

Cells = Sequence[object]
Step = Callable[[Established, TermId, TermId, Cells], View | None]
"""What a rule concludes of a candidate's and a baseline's term, from the cells of its note."""


def _counterpart(known: Established, own: TermId, other: TermId, cells: Cells) -> View | None:
    op, reduced, given_reduced = known.op(cells[0]), number(cells[1]), number(cells[2])
    rest = cells[3:]
    reads, given = ([known.map(cell) for cell in rest[start::5]] for start in (0, 3))
    own_terms, other_terms = ([known.term(cell) for cell in rest[start::5]] for start in (1, 4))
    known.must_compute(own, op, reduced, *zip(reads, own_terms, strict=True))
    known.must_compute(other, op, given_reduced, *zip(given, other_terms, strict=True))
    readings = [Reading(index, known.view(cell)) for index, cell in zip(reads, rest[2::5], strict=True)]
    inner = joint(op, readings, given)
    view = None if inner is None else concluded(op, inner, reduced, given_reduced)
    if view is None or inner is None:
        return None
    points = points_of(inner.index.domain)
    targets = read_at(inner.index, points)
    entered = moved(points, _starts(inner))
    for reading, index in zip(readings, given, strict=True):
        _must_agree(_seen(reading, entered), read_at(index, targets))
    kept, given_kept = points.shape[0] - reduced, targets.shape[0] - given_reduced
    _must_agree(read_at(view.index, points[:kept]), targets[:given_kept])
    if not are_inside(targets, inner.index.codomain):
        raise Rejected("a place lies outside of the baseline's operation")
    if op.startswith("block:"):
        _must_agree(points[kept:], targets[given_kept:])
    elif reduced or given_reduced:
        _must_fold(op, view, inner, kept, given_kept)
    return view


def _must_fold(op: str, view: View, inner: View, kept: int, given_kept: int) -> None:
    """Folded places, together with ranks that become pending, meet each of the baseline's equally often."""
    sizes, given_sizes = inner.index.domain[kept:], inner.index.codomain[given_kept:]
    offsets = _offsets(view.partial)
    count, given_count = prod(sizes) * len(offsets), prod(given_sizes)
    times, odd = divmod(count, given_count)
    repeats = times // len(_offsets(inner.partial))
    if odd or (op == "sum" and view.scale != inner.scale * repeats):
        raise Rejected(f"{count} places do not meet {given_count} as often as the scale says")
    if count > MOST_ENUMERATED:
        return
    points = all_points((len(offsets), *sizes))
    start = np.zeros((kept - 1, points.shape[1]), dtype=np.int64)
    ranks = np.array(offsets, dtype=np.int64)[points[:1]]
    met = read_at(inner.index, np.concatenate([ranks, start, points[1:]]))[given_kept:]
    if (np.bincount(np.ravel_multi_index(tuple(met), given_sizes), minlength=given_count) != times).any():
        raise Rejected("a fold meets some of the baseline's places more often than others")


def _offsets(partial: Partial | None) -> list[int]:
    """From a group's first rank to all of the group."""
    digits = partial.digits if partial is not None else ()
    return [
        sum(stride * place for (stride, _), place in zip(digits, places, strict=True))
        for places in product(*(range(size) for _, size in digits))
    ]


def _over_ranks(known: Established, own: TermId, other: TermId, cells: Cells) -> View | None:
    name, access, operand, view = cells
    op, reading = known.op(name), Reading(known.map(access), known.view(view))
    known.must_compute(own, op, 0, (reading.access, known.term(operand)))
    found = combination(op)
    if found is None:
        raise Rejected(f"{op!r} combines nothing")
    return _reads(over_ranks(*found, reading), reading)


def _owned(known: Established, own: TermId, other: TermId, cells: Cells) -> View | None:
    name, access, operand, view, condition, owner = cells
    reading = Reading(known.map(access), known.view(view))
    index, term = known.map(condition), known.term(owner)
    known.must_compute(own, "mul", 0, (reading.access, known.term(operand)), (index, term))
    for member in known.classes.members(term):
        digits = owners(known.lowered.terms, Access(index, member))
        if digits is not None and f"owners:{digits}" == known.op(name):
            return _reads(owned(digits, reading), reading)
    raise Rejected(f"term {term} is not 1 on one rank of each group")


def _scaled(known: Established, own: TermId, other: TermId, cells: Cells) -> View | None:
    access, operand, view, place, factor = cells
    reading = Reading(known.map(access), known.view(view))
    index, term = known.map(place), known.term(factor)
    known.must_compute(own, "mul", 0, (reading.access, known.term(operand)), (index, term))
    return _reads(scaled(reading, known.factor(index, term)), reading)


def _unscaled(known: Established, own: TermId, other: TermId, cells: Cells) -> View | None:
    seen, access, operand, place, factor = cells
    given, index, term = known.map(access), known.map(place), known.term(factor)
    known.must_compute(other, "mul", 0, (given, known.term(operand)), (index, term))
    before = known.view(seen)
    view = unscaled(before, given, known.factor(index, term))
    if view is not None:
        _must_lie(view, before, given)
    return view


def _piece(known: Established, own: TermId, other: TermId, cells: Cells) -> View | None:
    axis, start = number(cells[0]), number(cells[1])
    reading = Reading(known.map(cells[2]), known.view(cells[4]))
    space = known.concatenation(own, axis, start, reading.access, known.term(cells[3]))
    begin = tuple(start if dim == axis else 0 for dim in range(len(space)))
    return _reads(piece(reading, space, axis, start), reading, begin)


def _assembled(known: Established, own: TermId, other: TermId, cells: Cells) -> View | None:
    axis, start = number(cells[0]), number(cells[1])
    before, given = known.view(cells[2]), known.map(cells[3])
    space = known.concatenation(other, axis, start, given, known.term(cells[4]))
    view = (
        assembled(before, given, space, axis, start)
        if len(cells) == 5
        else completed(before, given, space, axis, start, known.view(cells[5]))
    )
    if view is not None:
        _must_lie(view, before, given, tuple(start if dim == axis else 0 for dim in range(len(space))))
    return view


def _united(known: Established, own: TermId, other: TermId, cells: Cells) -> View | None:
    parts = [known.view(text(cell)) for cell in cells]
    view = united(*parts)
    for part in parts if view is not None else ():
        points = points_of(part.index.domain)
        steps = [at - start for at, start in zip(_starts(part), _starts(view or part), strict=True)]
        inside = moved(points, steps)
        if view is None or not are_inside(inside, view.index.domain):
            raise Rejected("a part lies outside of the whole")
        _must_agree(read_at(view.index, inside), read_at(part.index, points))
    return view


def _starts(view: View) -> list[int]:
    return [start for start, _ in view.window]


def _seen(reading: Reading, points: Points) -> Points:
    """Where a reader's places stand in the baseline."""
    access, view = reading
    inside = moved(read_at(access, points), [-start for start in _starts(view)])
    if not are_inside(inside, view.index.domain):
        raise Rejected("a place outside of the window is read")
    return read_at(view.index, inside)


def _reads(view: View | None, reading: Reading, begin: Sequence[int] = ()) -> View | None:
    """The view, if it reads the baseline where the reading does. The reader begins at ``begin``."""
    if view is not None:
        points = points_of(view.index.domain)
        start = [at - first for at, first in zip(_starts(view), begin or (0,) * len(view.shape), strict=True)]
        _must_agree(_seen(reading, moved(points, start)), read_at(view.index, points))
    return view


def _must_lie(view: View, before: View, given: IndexMap, begin: Sequence[int] = ()) -> None:
    """Through ``given``, which begins at ``begin``, the view reads what the view before read."""
    points = points_of(view.index.domain)
    inside = moved(read_at(view.index, points), [-at for at in begin or (0,) * len(view.index.codomain)])
    if view.window != before.window or not are_inside(inside, given.domain):
        raise Rejected("a place lies outside of what the baseline reads")
    _must_agree(read_at(given, inside), read_at(before.index, points))


def _must_agree(one: Points, other: Points) -> None:
    if one.shape != other.shape or (one != other).any():
        raise Rejected("the maps do not agree at some place")


STEPS: Mapping[str, Step] = {
    "counterpart": _counterpart,
    "over-ranks": _over_ranks,
    "owned": _owned,
    "scaled": _scaled,
    "unscaled": _unscaled,
    "piece": _piece,
    "assembled": _assembled,
    "completed": _assembled,
    "united": _united,
}
