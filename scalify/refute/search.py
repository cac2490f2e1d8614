"""The search for values on which two programs differ, guided by what their inputs are used for.

In: two programs and a budget. Out: the first draw on which they differ for certain, or how far the search
came. Families of values take turns, simple ones first; a draw on which the baseline has no finite values, or
reads where its tables have no row, says nothing and is passed over.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

import numpy as np

from scalify.errors import OutOfRange
from scalify.ir.evaluate import PerRank
from scalify.ir.ops.spec import Array
from scalify.refute.budget import Search
from scalify.refute.certain import rounding
from scalify.refute.compare import Compared, compared, confirmed
from scalify.refute.constants import masks
from scalify.refute.draw import FAMILIES
from scalify.refute.overflow import Overflow
from scalify.refute.pair import Pair
from scalify.refute.places import computed_places
from scalify.refute.run import run
from scalify.refute.unknown import unknown_outputs
from scalify.refute.unmasked import can_tell, inexcusable
from scalify.relate.model import OutputRelation
from scalify.verdict import Draw

ELSEWHERE = 1 << 20
"""How far the seeds are away with which it is tried whether an element ever has a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A draw on which the programs differ, and where.

    ``beyond`` says where the candidate reads out of range, if it does.
    """

    draw: Draw
    differing: tuple[Compared, ...]
    beyond: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """What came of a search, and how many draws said something."""

    found: Found | None
    draws: int


Outputs = Mapping[str, PerRank]


def search(pair: Pair, relations: Sequence[OutputRelation], budget: Search) -> Sought:
    """Look for values on which any of these outputs differ."""
    unknown = unknown_outputs(pair.baseline), unknown_outputs(pair.candidate)
    asked = tuple(
        each for each in relations if each.baseline not in unknown[0] and each.candidate not in unknown[1]
    )
    start_s = monotonic()
    said = 0
    for draw in _draws(budget.draws if asked else 0):
        found, useful = differing(pair, asked, draw)
        said += useful
        if found is not None:
            return Sought(found=found, draws=said)
        if monotonic() - start_s > budget.duration_s:
            break
    return Sought(found=None, draws=said)


def _draws(count: int) -> Iterator[Draw]:
    families = tuple(FAMILIES)
    for number in range(count):
        yield Draw(family=families[number % len(families)], seed=number // len(families))


def differing(pair: Pair, relations: Sequence[OutputRelation], draw: Draw) -> tuple[Found | None, bool]:
    """Where the outputs differ for certain on one draw, and whether the draw says anything at all."""
    given, own = pair.given(draw)
    try:
        baseline = run(pair.baseline, given, draw)
    except OutOfRange:
        return None, False
    finite = [np.isfinite(value).any() for each in relations for value in baseline[each.baseline]]
    if not any(finite):
        return None, False
    over = Overflow()
    try:
        candidate = run(pair.candidate, own, draw, over.seen)
    except OutOfRange as error:
        if computed_places(pair.candidate):
            return None, True
        return _beyond(pair, relations, draw, baseline, str(error)), True
    certain = _certain(pair, relations, draw, (baseline, candidate), overflowed=over.excuses)
    certain = _confirmed(pair, certain, draw)
    return (Found(draw=draw, differing=certain) if certain else None), True


def _certain(
    pair: Pair,
    relations: Sequence[OutputRelation],
    draw: Draw,
    outputs: tuple[Outputs, Outputs],
    *,
    overflowed: bool,
) -> tuple[Compared, ...]:
    """Where outputs differ by more than rounding and masks explain."""
    excused = overflowed or masks(pair.candidate)
    is_seen = not overflowed and can_tell(pair)
    if not any(_apart(each, outputs, None, excused and not is_seen) for each in relations):
        return ()
    given, own = pair.given(draw)
    bounds = (
        rounding(pair.baseline, given, draw, outputs[0], garbage=True),
        rounding(pair.candidate, own, draw, outputs[1]),
    )
    apart = [_apart(each, outputs, bounds, excused) for each in relations]
    if is_seen and not any(apart):
        nothing = [_apart(each, outputs, bounds, excused=False) for each in relations]
        apart = [inexcusable(pair, draw, each) for each in nothing if each is not None]
    return tuple(each for each in apart if each is not None and each.differing)


def _confirmed(pair: Pair, found: tuple[Compared, ...], draw: Draw) -> tuple[Compared, ...]:
    """Without those elements without a value that have one, and a finite one of the baseline, on other draws.

    A quotient may have no value for a sum that happens to be zero: nothing is said of programs where they
    divide by zero. One that never has a value is another program.
    """
    for family in FAMILIES:
        if not any(each.nothing.any() for each in found):
            break
        other = Draw(family=family, seed=draw.seed + ELSEWHERE)
        outputs = _both(pair, other)
        if outputs is not None:
            found = tuple(
                confirmed(each, compared(each.relation, outputs, None, overflowed=False)) for each in found
            )
    return tuple(each for each in found if each.differing)


def _both(pair: Pair, draw: Draw) -> tuple[Outputs, Outputs] | None:
    given, own = pair.given(draw)
    try:
        return run(pair.baseline, given, draw), run(pair.candidate, own, draw)
    except OutOfRange:
        return None


def _beyond(
    pair: Pair, relations: Sequence[OutputRelation], draw: Draw, baseline: Outputs, error: str
) -> Found | None:
    """The candidate reads where a table has no row: it has no value at all, where the baseline has."""
    shapes = {output.name: pair.candidate.by_id()[output.value].type for output in pair.candidate.outputs}
    nothing = {
        each.candidate: [np.full(shapes[each.candidate].shape, np.nan)] * pair.candidate.mesh.size
        for each in relations
    }
    apart = [_apart(each, (baseline, nothing), None, excused=False) for each in relations]
    found = tuple(each for each in apart if each is not None)
    return Found(draw=draw, differing=found, beyond=error) if found else None


def _apart(
    relation: OutputRelation,
    outputs: tuple[Outputs, Outputs],
    bounds: tuple[Mapping[str, Sequence[Array]], Mapping[str, Sequence[Array]]] | None,
    excused: bool,
) -> Compared | None:
    one = compared(relation, outputs, bounds, overflowed=excused)
    return one if one.differing else None
